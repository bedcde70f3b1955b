/*
 * compile.c
 *	  Expressions as a graph, in which equal parts are one node, and the graph as
 *	  instructions: see compile.h. Handles are in program/programs.c.
 *
 * Everything in a program is evaluated for all rows, and failures of rows that
 * PostgreSQL would not have come to are dropped by the keeper (AND, OR, SELECT).
 * What PostgreSQL evaluates for an input could not be dropped: so below a place
 * that it may not come to ("lazy"), only harmless expressions become inputs.
 *
 * Invariant: as in compile.h.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "wire/wire.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "ops/evaluate.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "program/compile.h"
#include "program/registry.h"
#include "value/types.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#define ARGS_MAX 4
#define NODES_MAX CFD_PROGRAM_INSTRUCTIONS_MAX
/* No node: this cannot be compiled. */
#define NONE (-1)
/* Constant lists up to this length are compared one by one. */
#define SHORT_LIST 8

typedef struct GraphNode
{
	uint8		code;
	uint8		type;			/* of a value; 0: a boolean or the like */
	uint16		operand;
	int32		immediate;
	int			count;
	int			args[ARGS_MAX];
	int			uses;
	int			local;			/* where it is kept once computed, or -1 */
} GraphNode;

typedef struct Graph
{
	CfdCompiler *compiler;
	GraphNode  *nodes;
	int			count;
} Graph;

typedef struct Emitter
{
	Graph	   *graph;
	StringInfoData code;
	StringInfoData text;
	int			depth;
	int			locals;
	bool		too_large;
} Emitter;

static int	compile(Graph *graph, Node *expr, bool lazy);

/* ---------- the graph ---------- */

static int
add_node(Graph *graph, GraphNode node)
{
	node.uses = 0;
	node.local = -1;
	for (int i = 0; i < graph->count; i++)
	{
		GraphNode  *other = &graph->nodes[i];

		if (other->code == node.code && other->operand == node.operand &&
			other->immediate == node.immediate && other->count == node.count &&
			memcmp(other->args, node.args, node.count * sizeof(int)) == 0)
			return i;
	}
	if (graph->count == NODES_MAX)
		return NONE;
	graph->nodes[graph->count] = node;
	return graph->count++;
}

static int
add_unary(Graph *graph, uint8 code, int a)
{
	if (a == NONE)
		return NONE;
	return add_node(graph, (GraphNode) {.code = code,.count = 1,.args = {a}});
}

static int
add_binary(Graph *graph, uint8 code, int a, int b)
{
	if (a == NONE || b == NONE)
		return NONE;
	return add_node(graph, (GraphNode) {.code = code,.count = 2,.args = {a, b}});
}

static int
add_select(Graph *graph, int condition, int yes, int no)
{
	if (condition == NONE || yes == NONE || no == NONE)
		return NONE;
	if (graph->nodes[yes].type != graph->nodes[no].type)
		return NONE;
	return add_node(graph, (GraphNode) {.code = CFD_PROGRAM_SELECT,.type = graph->nodes[yes].type,
					.count = 3,.args = {condition, yes, no}});
}

/* ---------- inputs ---------- */

/* varchar values are text values. */
static uint8
cfd_compile_stored_type(Oid type)
{
	uint8		code = cfd_type_code(type);

	return code == CFD_TYPE_VARCHAR ? CFD_TYPE_TEXT : code;
}

static bool
is_whole(uint8 type)
{
	return type == CFD_TYPE_INT2 || type == CFD_TYPE_INT4 || type == CFD_TYPE_INT8;
}

static bool
is_float(uint8 type)
{
	return type == CFD_TYPE_FLOAT4 || type == CFD_TYPE_FLOAT8;
}

/* Whether equal values of two types have one form for the keeper. */
static bool
have_one_form(uint8 a, uint8 b)
{
	return a == b || (is_whole(a) && is_whole(b)) || (is_float(a) && is_float(b));
}

static bool
cfd_compile_is_constant(Node *expr)
{
	return IsA(expr, Const) || IsA(expr, Param);
}

static bool
may_fail(Oid function, void *context)
{
	(void) context;
	/* A leakproof function raises no errors that depend on its arguments. */
	return !get_func_leakproof(function);
}

static bool
is_risky(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
		case T_Param:
		case T_List:
		case T_RelabelType:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_FuncExpr:
		case T_ScalarArrayOpExpr:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
			break;
		default:
			return true;
	}
	return check_functions_in_node(node, may_fail, context) ||
		expression_tree_walker(node, is_risky, context);
}

/* Whether it may be evaluated although PostgreSQL would perhaps not come to it. */
static bool
is_harmless(Node *expr)
{
	if (IsA(expr, FuncExpr))
	{
		FuncExpr   *call = (FuncExpr *) expr;
		const CfdFunction *function = cfd_function(call->funcid);

		/* A plain value that becomes a protected one: a message, no error. */
		if (function != NULL && function->call == CFD_CALL_FROM_PLAIN && function->second == 0)
			expr = (Node *) call->args;
	}
	return !contain_volatile_functions(expr) && !is_risky(expr, NULL);
}

static int
add_input(Graph *graph, Node *expr, bool lazy)
{
	CfdCompiler *compiler = graph->compiler;
	Oid			type = exprType(expr);
	uint8		code = cfd_compile_stored_type(type);
	bool		constant = cfd_compile_is_constant(expr);
	int			number;

	if (code == 0 && type != BOOLOID)
		return NONE;
	if (lazy && !constant && !IsA(expr, Var) && !is_harmless(expr))
		return NONE;
	for (number = 0; number < compiler->count; number++)
	{
		if (!compiler->inputs[number].list && equal(compiler->inputs[number].expr, expr) && !contain_volatile_functions(expr))
			break;
	}
	if (number == compiler->count)
	{
		if (number == CFD_COLUMNS_MAX)
			return NONE;
		compiler->inputs[number] = (CfdInput) {.expr = (Expr *) expr,.type = code,.constant = constant};
		compiler->count++;
	}
	return add_node(graph, (GraphNode) {.code = CFD_PROGRAM_INPUT,.type = code,.operand = number});
}

/* A list for all rows. */
static int
add_list(Graph *graph, Node *array, uint8 type)
{
	CfdCompiler *compiler = graph->compiler;
	int			number;

	for (number = 0; number < compiler->count; number++)
	{
		if (compiler->inputs[number].list && equal(compiler->inputs[number].expr, array))
			return number;
	}
	if (number == CFD_COLUMNS_MAX)
		return NONE;
	compiler->inputs[number] = (CfdInput) {.expr = (Expr *) array,.type = type,.constant = true,.list = true};
	compiler->count++;
	return number;
}

static int
add_boolean(Graph *graph, bool isnull, bool value)
{
	return add_node(graph, (GraphNode) {.code = CFD_PROGRAM_BOOLEAN,.operand = isnull ? 2 : value});
}

static int
add_null(Graph *graph, uint8 type)
{
	Oid			oid;
	int16		length;
	bool		by_value;

	if (type == 0)
		return add_boolean(graph, true, false);
	oid = cfd_type_oid(type);
	get_typlenbyval(oid, &length, &by_value);
	return add_input(graph, (Node *) makeNullConst(oid, -1, InvalidOid), true);
}

/* ---------- functions and operators ---------- */

static bool
constant_int(Node *expr, int32 *value)
{
	if (!IsA(expr, Const) || ((Const *) expr)->constisnull || ((Const *) expr)->consttype != INT4OID)
		return false;
	*value = DatumGetInt32(((Const *) expr)->constvalue);
	return true;
}

static bool
constant_bool(Node *expr, bool *value)
{
	if (!IsA(expr, Const) || ((Const *) expr)->constisnull || ((Const *) expr)->consttype != BOOLOID)
		return false;
	*value = DatumGetBool(((Const *) expr)->constvalue);
	return true;
}

static bool
constant_unit(Node *expr, int32 *unit)
{
	if (!IsA(expr, Const) || ((Const *) expr)->constisnull || ((Const *) expr)->consttype != TEXTOID)
		return false;
	*unit = cfd_unit_code(DatumGetTextPP(((Const *) expr)->constvalue));
	return *unit != 0;
}

static int
compile_typmod(Graph *graph, const CfdFunction *function, List *args, uint8 type, bool lazy)
{
	GraphNode	node = {.code = CFD_PROGRAM_CALL,.type = type,.count = 1};
	bool		is_explicit = false;

	if (list_length(args) < 2 || !constant_int(lsecond(args), &node.immediate))
		return NONE;
	if (list_length(args) > 2 && !constant_bool(lthird(args), &is_explicit))
		return NONE;
	node.operand = is_explicit ? function->second : function->signature;
	node.args[0] = compile(graph, linitial(args), lazy);
	return node.args[0] == NONE ? NONE : add_node(graph, node);
}

/* A call of one of our functions. */
static int
compile_call(Graph *graph, const CfdFunction *function, List *args, Oid result, bool lazy)
{
	GraphNode	node = {.code = CFD_PROGRAM_CALL,.operand = function->signature};
	int			first = 0;

	switch (function->call)
	{
		case CFD_CALL_TYPMOD:
			return compile_typmod(graph, function, args, cfd_compile_stored_type(result), lazy);
		case CFD_CALL_UNIT:
			if (list_length(args) != 2 || !constant_unit(linitial(args), &node.immediate))
				return NONE;
			first = 1;
			break;
		case CFD_CALL_EVAL:
		case CFD_CALL_NULLABLE:
		case CFD_CALL_TEST:
		case CFD_CALL_ORDER:
		case CFD_CALL_HASH:
			break;
		default:
			return NONE;
	}
	node.type = function->call == CFD_CALL_TEST || function->call == CFD_CALL_ORDER ||
		function->call == CFD_CALL_HASH ? 0 : cfd_compile_stored_type(result);
	node.count = function->operands;
	if (list_length(args) != first + node.count || node.count > ARGS_MAX)
		return NONE;
	for (int i = 0; i < node.count; i++)
	{
		node.args[i] = compile(graph, list_nth(args, first + i), lazy);
		if (node.args[i] == NONE || graph->nodes[node.args[i]].type == 0)
			return NONE;
	}
	return add_node(graph, node);
}

static int
compile_function(Graph *graph, Oid oid, List *args, Oid result, bool lazy)
{
	const CfdFunction *function = cfd_function(oid);

	if (function == NULL || function->call == CFD_CALL_ORDER || function->call == CFD_CALL_HASH)
		return NONE;
	return compile_call(graph, function, args, result, lazy);
}

/* a IS DISTINCT FROM b: NULLs are equal to each other. */
static int
compile_distinct(Graph *graph, OpExpr *expr, bool lazy)
{
	int			equal = compile_function(graph, expr->opfuncid, expr->args, BOOLOID, lazy);
	int			a;
	int			b;
	int			either;
	int			both;

	if (equal == NONE)
		return NONE;
	a = add_unary(graph, CFD_PROGRAM_IS_NULL, graph->nodes[equal].args[0]);
	b = add_unary(graph, CFD_PROGRAM_IS_NULL, graph->nodes[equal].args[1]);
	either = add_binary(graph, CFD_PROGRAM_OR, a, b);
	both = add_binary(graph, CFD_PROGRAM_AND, a, b);
	return add_select(graph, either, add_unary(graph, CFD_PROGRAM_NOT, both),
					  add_unary(graph, CFD_PROGRAM_NOT, equal));
}

static int
compile_nullif(Graph *graph, OpExpr *expr, bool lazy)
{
	int			equal = compile_function(graph, expr->opfuncid, expr->args, BOOLOID, lazy);
	int			value;

	if (equal == NONE)
		return NONE;
	value = graph->nodes[equal].args[0];
	return add_select(graph, equal, add_null(graph, graph->nodes[value].type), value);
}

/* Whether it is x = ANY, or x <> ALL. */
static bool
asks_membership(const ScalarArrayOpExpr *expr)
{
	List	   *meanings = get_op_btree_interpretation(expr->opno);
	int			strategy = meanings == NIL ? 0 : ((OpBtreeInterpretation *) linitial(meanings))->strategy;

	return strategy == (expr->useOr ? BTEqualStrategyNumber : ROWCOMPARE_NE);
}

/* Elements of a constant list; -1 where that is not known yet, or it is NULL. */
static int
elements_of(const Node *array)
{
	const Const *constant = (const Const *) array;
	ArrayType  *values;

	if (!IsA(array, Const) || constant->constisnull)
		return -1;
	values = DatumGetArrayTypeP(constant->constvalue);
	return ArrayGetNItems(ARR_NDIM(values), ARR_DIMS(values));
}

/* x = ANY or <> ALL (list) as one question; NONE where it is none, or short enough to be several. */
static int
compile_among(Graph *graph, const ScalarArrayOpExpr *expr, bool lazy)
{
	Node	   *array = lsecond(expr->args);
	uint8		type = cfd_compile_stored_type(get_element_type(exprType(array)));
	int			elements = elements_of(array);
	int			value;
	int			list;
	int			among;

	if (!graph->compiler->lists || type == 0 || !cfd_compile_is_constant(array) || !asks_membership(expr) ||
		(elements >= 0 && elements <= SHORT_LIST) || elements > CFD_ROWS_MAX)
		return NONE;
	value = compile(graph, linitial(expr->args), lazy);
	if (value == NONE || !have_one_form(graph->nodes[value].type, type))
		return NONE;
	list = add_list(graph, array, type);
	if (list == NONE)
		return NONE;
	among = add_node(graph, (GraphNode) {.code = CFD_PROGRAM_AMONG,.operand = list,.count = 1,.args = {value}});
	return expr->useOr ? among : add_unary(graph, CFD_PROGRAM_NOT, among);
}

/* x op ANY or ALL (array) */
static int
compile_array(Graph *graph, ScalarArrayOpExpr *expr, bool lazy)
{
	const CfdFunction *function = cfd_function(expr->opfuncid);
	Const	   *array = lsecond(expr->args);
	ArrayType  *values;
	Datum	   *datums;
	bool	   *nulls;
	int			count;
	int			nodes = graph->count;
	int			inputs = graph->compiler->count;
	int			all;

	if (function == NULL || function->call != CFD_CALL_TEST)
		return NONE;
	all = compile_among(graph, expr, lazy);
	if (all != NONE)
		return all;
	graph->count = nodes;
	graph->compiler->count = inputs;
	if (!IsA(array, Const) || array->constisnull)
		return NONE;
	values = DatumGetArrayTypeP(array->constvalue);
	if (cfd_type_code(ARR_ELEMTYPE(values)) == 0)
		return NONE;
	deconstruct_array(values, ARR_ELEMTYPE(values), sizeof(CfdFid), true, TYPALIGN_DOUBLE,
					  &datums, &nulls, &count);
	for (int i = 0; i < count; i++)
	{
		Const	   *value = makeConst(ARR_ELEMTYPE(values), -1, InvalidOid, sizeof(CfdFid),
									  datums[i], nulls[i], true);
		int			test = compile_call(graph, function, list_make2(linitial(expr->args), value), BOOLOID, lazy);

		all = i == 0 ? test : add_binary(graph, expr->useOr ? CFD_PROGRAM_OR : CFD_PROGRAM_AND, all, test);
		if (all == NONE)
			return NONE;
		lazy = true;
	}
	return all;
}

/* ---------- the rest of what an expression can have ---------- */

static int
compile_boolean(Graph *graph, BoolExpr *expr, bool lazy)
{
	int			result = compile(graph, linitial(expr->args), lazy);
	ListCell   *cell;

	if (expr->boolop == NOT_EXPR)
		return add_unary(graph, CFD_PROGRAM_NOT, result);
	for_each_from(cell, expr->args, 1)
	{
		if (result == NONE)
			return NONE;
		result = add_binary(graph, expr->boolop == AND_EXPR ? CFD_PROGRAM_AND : CFD_PROGRAM_OR,
							result, compile(graph, lfirst(cell), true));
	}
	return result;
}

static int
compile_truth(Graph *graph, BooleanTest *expr, bool lazy)
{
	int			a = compile(graph, (Node *) expr->arg, lazy);

	switch (expr->booltesttype)
	{
		case IS_TRUE:
			return add_unary(graph, CFD_PROGRAM_HOLDS, a);
		case IS_NOT_TRUE:
			return add_unary(graph, CFD_PROGRAM_NOT, add_unary(graph, CFD_PROGRAM_HOLDS, a));
		case IS_FALSE:
			return add_unary(graph, CFD_PROGRAM_HOLDS, add_unary(graph, CFD_PROGRAM_NOT, a));
		case IS_NOT_FALSE:
			a = add_unary(graph, CFD_PROGRAM_HOLDS, add_unary(graph, CFD_PROGRAM_NOT, a));
			return add_unary(graph, CFD_PROGRAM_NOT, a);
		case IS_UNKNOWN:
			return add_unary(graph, CFD_PROGRAM_IS_NULL, a);
		case IS_NOT_UNKNOWN:
			return add_unary(graph, CFD_PROGRAM_NOT, add_unary(graph, CFD_PROGRAM_IS_NULL, a));
	}
	return NONE;
}

static int
compile_null_test(Graph *graph, NullTest *expr, bool lazy)
{
	int			a;

	if (expr->argisrow)
		return NONE;
	a = add_unary(graph, CFD_PROGRAM_IS_NULL, compile(graph, (Node *) expr->arg, lazy));
	return expr->nulltesttype == IS_NULL ? a : add_unary(graph, CFD_PROGRAM_NOT, a);
}

static Node *
replace_test_value(Node *node, void *value)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, CaseTestExpr))
		return copyObject(value);
	if (IsA(node, CaseExpr) && ((CaseExpr *) node)->arg != NULL)
	{
		/* Inside, the test value is another one. */
		CaseExpr   *copy = copyObject((CaseExpr *) node);

		copy->arg = (Expr *) replace_test_value((Node *) copy->arg, value);
		return (Node *) copy;
	}
	return expression_tree_mutator(node, replace_test_value, value);
}

/* From the last branch to the first: CASE x WHEN y is CASE WHEN x = y, x computed once. */
static int
compile_branches(Graph *graph, CaseExpr *expr, int number, bool lazy)
{
	CaseWhen   *when;
	Node	   *test;
	int			condition;
	int			yes;

	if (number == list_length(expr->args))
		return expr->defresult != NULL ? compile(graph, (Node *) expr->defresult, lazy)
			: add_null(graph, cfd_compile_stored_type(expr->casetype));
	when = list_nth_node(CaseWhen, expr->args, number);
	test = (Node *) when->expr;
	if (expr->arg != NULL)
		test = replace_test_value(test, expr->arg);
	condition = compile(graph, test, lazy);
	yes = condition == NONE ? NONE : compile(graph, (Node *) when->result, true);
	return yes == NONE ? NONE
		: add_select(graph, condition, yes, compile_branches(graph, expr, number + 1, true));
}

static int
compile_case(Graph *graph, CaseExpr *expr, bool lazy)
{
	if (expr->arg != NULL && contain_volatile_functions((Node *) expr->arg))
		return NONE;
	return compile_branches(graph, expr, 0, lazy);
}

static int
compile_coalesce(Graph *graph, List *args, int number, bool lazy)
{
	int			value = compile(graph, list_nth(args, number), lazy);
	int			rest;

	if (value == NONE || number + 1 == list_length(args))
		return value;
	rest = compile_coalesce(graph, args, number + 1, true);
	return add_select(graph, add_unary(graph, CFD_PROGRAM_IS_NULL, value), rest, value);
}

static int
compile_inside(Graph *graph, Node *expr, bool lazy)
{
	switch (nodeTag(expr))
	{
		case T_Const:
			if (((Const *) expr)->consttype == BOOLOID)
				return add_boolean(graph, ((Const *) expr)->constisnull,
								   DatumGetBool(((Const *) expr)->constvalue));
			return NONE;
		case T_FuncExpr:
			return compile_function(graph, ((FuncExpr *) expr)->funcid, ((FuncExpr *) expr)->args,
									((FuncExpr *) expr)->funcresulttype, lazy);
		case T_OpExpr:
			set_opfuncid((OpExpr *) expr);
			return compile_function(graph, ((OpExpr *) expr)->opfuncid, ((OpExpr *) expr)->args,
									((OpExpr *) expr)->opresulttype, lazy);
		case T_DistinctExpr:
			set_opfuncid((OpExpr *) expr);
			return compile_distinct(graph, (OpExpr *) expr, lazy);
		case T_NullIfExpr:
			set_opfuncid((OpExpr *) expr);
			return compile_nullif(graph, (OpExpr *) expr, lazy);
		case T_ScalarArrayOpExpr:
			set_sa_opfuncid((ScalarArrayOpExpr *) expr);
			return compile_array(graph, (ScalarArrayOpExpr *) expr, lazy);
		case T_BoolExpr:
			return compile_boolean(graph, (BoolExpr *) expr, lazy);
		case T_BooleanTest:
			return compile_truth(graph, (BooleanTest *) expr, lazy);
		case T_NullTest:
			return compile_null_test(graph, (NullTest *) expr, lazy);
		case T_CaseExpr:
			return compile_case(graph, (CaseExpr *) expr, lazy);
		case T_CoalesceExpr:
			return compile_coalesce(graph, ((CoalesceExpr *) expr)->args, 0, lazy);
		case T_RelabelType:
			if (cfd_compile_stored_type(((RelabelType *) expr)->resulttype) != cfd_compile_stored_type(exprType((Node *) ((RelabelType *) expr)->arg)))
				return NONE;
			return compile(graph, (Node *) ((RelabelType *) expr)->arg, lazy);
		default:
			return NONE;
	}
}

/* Whether there is a call in what is new since a node. */
static bool
has_call(Graph *graph, int from)
{
	for (int i = from; i < graph->count; i++)
	{
		if (graph->nodes[i].code == CFD_PROGRAM_CALL || graph->nodes[i].code == CFD_PROGRAM_AMONG)
			return true;
	}
	return false;
}

static bool
has_our_functions(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, FuncExpr) && cfd_function(((FuncExpr *) node)->funcid) != NULL)
		return ((void) context, true);
	if (IsA(node, OpExpr) || IsA(node, DistinctExpr) || IsA(node, NullIfExpr))
	{
		set_opfuncid((OpExpr *) node);
		if (cfd_function(((OpExpr *) node)->opfuncid) != NULL)
			return true;
	}
	if (IsA(node, ScalarArrayOpExpr))
	{
		set_sa_opfuncid((ScalarArrayOpExpr *) node);
		if (cfd_function(((ScalarArrayOpExpr *) node)->opfuncid) != NULL)
			return true;
	}
	return expression_tree_walker(node, has_our_functions, context);
}

/* Compiles, or lets PostgreSQL evaluate it for an input; NONE where neither can be. */
static int
compile(Graph *graph, Node *expr, bool lazy)
{
	int			nodes = graph->count;
	int			inputs = graph->compiler->count;
	Oid			type = exprType(expr);
	int			result;

	if (type != BOOLOID && cfd_compile_stored_type(type) == 0)
		return NONE;
	/* What is plain altogether PostgreSQL does best, if it may do it now. */
	if (type == BOOLOID && !IsA(expr, Const) && !has_our_functions(expr, NULL))
	{
		result = add_input(graph, expr, lazy);
		if (result != NONE)
			return result;
	}
	result = compile_inside(graph, expr, lazy);
	if (result != NONE)
		return result;
	graph->count = nodes;
	graph->compiler->count = inputs;
	return add_input(graph, expr, lazy);
}

/* ---------- instructions ---------- */

static void
instruction(Emitter *emitter, uint8 code, uint16 operand, int32 immediate)
{
	unsigned char bytes[8] = {code};

	cfd_put16(bytes + 2, operand);
	cfd_put32(bytes + 4, (uint32) immediate);
	appendBinaryStringInfo(&emitter->code, (const char *) bytes, sizeof(bytes));
	if (emitter->code.len > CFD_PROGRAM_INSTRUCTIONS_MAX * sizeof(bytes))
		emitter->too_large = true;
}

static void
name_of(StringInfo text, Graph *graph, const GraphNode *node)
{
	static const char *const names[] = {
		[CFD_PROGRAM_AND] = "and",[CFD_PROGRAM_OR] = "or",[CFD_PROGRAM_NOT] = "not",
		[CFD_PROGRAM_IS_NULL] = "is_null",[CFD_PROGRAM_SELECT] = "select",[CFD_PROGRAM_HOLDS] = "holds",
	};

	switch (node->code)
	{
		case CFD_PROGRAM_INPUT:
			appendStringInfo(text, "%s%d", graph->compiler->inputs[node->operand].constant ? "$" : "#",
							 node->operand + 1);
			break;
		case CFD_PROGRAM_BOOLEAN:
			appendStringInfoString(text, node->operand == 2 ? "null" : node->operand == 1 ? "true" : "false");
			break;
		case CFD_PROGRAM_CALL:
			appendStringInfoString(text, cfd_signature_name(node->operand));
			break;
		case CFD_PROGRAM_AMONG:
			appendStringInfo(text, "among_$%d", node->operand + 1);
			break;
		default:
			appendStringInfoString(text, names[node->code]);
	}
}

static void
emit(Emitter *emitter, int number)
{
	GraphNode  *node = &emitter->graph->nodes[number];

	if (emitter->too_large)
		return;
	if (node->local >= 0)
	{
		instruction(emitter, CFD_PROGRAM_LOAD, node->local, 0);
		appendStringInfo(&emitter->text, "@%d", node->local + 1);
		emitter->depth++;
	}
	else
	{
		bool		keep = node->uses > 1 && node->count > 0 && emitter->locals < CFD_PROGRAM_LOCALS_MAX;
		int			local = keep ? emitter->locals++ : -1;

		if (keep)
			appendStringInfo(&emitter->text, "@%d:=", local + 1);
		name_of(&emitter->text, emitter->graph, node);
		for (int i = 0; i < node->count; i++)
		{
			appendStringInfoString(&emitter->text, i == 0 ? "(" : ", ");
			emit(emitter, node->args[i]);
		}
		if (node->count > 0)
			appendStringInfoChar(&emitter->text, ')');
		instruction(emitter, node->code, node->operand, node->immediate);
		emitter->depth += 1 - node->count;
		if (keep)
		{
			instruction(emitter, CFD_PROGRAM_STORE, local, 0);
			node->local = local;
		}
	}
	if (emitter->depth > CFD_PROGRAM_STACK_MAX)
		emitter->too_large = true;
}

static void
count_uses(Graph *graph, int number)
{
	GraphNode  *node = &graph->nodes[number];

	if (node->uses++ > 0)
		return;
	for (int i = 0; i < node->count; i++)
		count_uses(graph, node->args[i]);
}

static CfdResult
result_of(const GraphNode *node, CfdCall call)
{
	if (node->type != 0)
		return CFD_RESULT_FID;
	return call == CFD_CALL_ORDER ? CFD_RESULT_ORDER : call == CFD_CALL_HASH ? CFD_RESULT_HASH : CFD_RESULT_BOOL;
}

static CfdProgram *
finish(Graph *graph, int root, CfdCall call)
{
	Emitter		emitter = {.graph = graph};
	CfdProgram *program;

	count_uses(graph, root);
	initStringInfo(&emitter.code);
	initStringInfo(&emitter.text);
	emit(&emitter, root);
	if (emitter.too_large)
		return NULL;
	program = palloc0(sizeof(CfdProgram));
	program->compiler = graph->compiler;
	program->result = result_of(&graph->nodes[root], call);
	program->type = graph->nodes[root].type;
	program->code = (unsigned char *) emitter.code.data;
	program->instructions = emitter.code.len / 8;
	program->text = emitter.text.data;
	for (int i = 0; i < program->instructions; i++)
		program->calls += program->code[i * 8] == CFD_PROGRAM_CALL || program->code[i * 8] == CFD_PROGRAM_AMONG;
	return program;
}

static Graph
new_graph(CfdCompiler *compiler)
{
	return (Graph) {.compiler = compiler,.nodes = palloc(NODES_MAX * sizeof(GraphNode))};
}

/* The program, unless there is none or nothing in it; then inputs are as before. */
static CfdProgram *
finish_if_useful(Graph *graph, int root, int inputs)
{
	CfdProgram *program = NULL;

	if (root != NONE && has_call(graph, 0))
		program = finish(graph, root, CFD_CALL_EVAL);
	if (program != NULL && program->calls == 0)
		program = NULL;
	if (program == NULL)
		graph->compiler->count = inputs;
	pfree(graph->nodes);
	return program;
}

/* ---------- interface ---------- */

CfdCompiler *
cfd_compiler(void)
{
	CfdCompiler *compiler = palloc0(sizeof(CfdCompiler));

	compiler->inputs = palloc(CFD_COLUMNS_MAX * sizeof(CfdInput));
	return compiler;
}

CfdCompiler *
cfd_compiler_with_lists(void)
{
	CfdCompiler *compiler = cfd_compiler();

	compiler->lists = true;
	return compiler;
}

CfdProgram *
cfd_compile(CfdCompiler *compiler, Node *expr)
{
	Graph		graph = new_graph(compiler);
	int			inputs = compiler->count;

	return finish_if_useful(&graph, compile(&graph, expr, false), inputs);
}

CfdProgram *
cfd_compile_quals(CfdCompiler *compiler, List *quals)
{
	Graph		graph = new_graph(compiler);
	int			inputs = compiler->count;
	int			all = NONE;
	ListCell   *cell;

	foreach(cell, quals)
	{
		int			qual = compile(&graph, lfirst(cell), foreach_current_index(cell) > 0);

		qual = add_unary(&graph, CFD_PROGRAM_HOLDS, qual);
		all = foreach_current_index(cell) == 0 ? qual : add_binary(&graph, CFD_PROGRAM_AND, all, qual);
		if (all == NONE)
			break;
	}
	return finish_if_useful(&graph, all, inputs);
}

CfdProgram *
cfd_compile_call(CfdCompiler *compiler, Oid oid, List *args)
{
	const CfdFunction *function = cfd_function(oid);
	Graph		graph = new_graph(compiler);
	int			inputs = compiler->count;
	int			root = function == NULL ? NONE
		: compile_call(&graph, function, args, get_func_rettype(oid), false);
	CfdProgram *program = root == NONE ? NULL : finish(&graph, root, function->call);

	if (program == NULL)
		compiler->count = inputs;
	pfree(graph.nodes);
	return program;
}

bool
cfd_harmless(Node *expr)
{
	return is_harmless(expr);
}

bool
cfd_compilable(Node *expr)
{
	if (exprType(expr) != BOOLOID && cfd_type_code(exprType(expr)) == 0)
		return false;
	/* A sub-select is most of the work, and not the keeper's. */
	if (contain_subplans(expr))
		return false;
	return has_our_functions(expr, NULL) && cfd_compile(cfd_compiler_with_lists(), expr) != NULL;
}
