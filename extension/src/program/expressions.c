/*
 * expressions.c
 *	  Converts each kind of expression into graph nodes; see graph.h.
 *
 * Invariant: as in graph.h.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "cell/cell.h"
#include "compat/compat.h"
#include "wire/wire.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "ops/evaluate.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "program/compile.h"
#include "program/graph.h"
#include "program/registry.h"
#include "soft/soft.h"
#include "value/types.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

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
	node.args[0] = cfd_graph_compile(graph, linitial(args), lazy);
	return node.args[0] == NONE ? NONE : cfd_graph_add_node(graph, node);
}

/* Compiles opening a cell, possibly with a cast. */
static int
compile_opened(Graph *graph, const CfdFunction *function, List *args, Oid result, bool lazy)
{
	GraphNode	node = {.code = CFD_PROGRAM_CALL,.operand = function->signature,.count = 1};

	node.type = cfd_graph_stored_type(result);
	/* A cell of the family soft_ becomes an input only where it is opened. */
	if (cfd_soft_code(exprType(linitial(args))) != 0)
		return cfd_graph_add_input(graph, linitial(args), lazy);
	node.args[0] = cfd_graph_compile(graph, linitial(args), lazy);
	if (node.args[0] == NONE || function->signature == 0)
		return node.args[0];
	return cfd_graph_add_node(graph, node);
}

/* Compiles a call of one of Confide's functions. */
int
cfd_graph_compile_call(Graph *graph, const CfdFunction *function, List *args, Oid result, bool lazy)
{
	GraphNode	node = {.code = CFD_PROGRAM_CALL,.operand = function->signature};
	int			first = 0;

	switch (function->call)
	{
		case CFD_CALL_OPEN:
			return compile_opened(graph, function, args, result, lazy);
		case CFD_CALL_TYPMOD:
			return compile_typmod(graph, function, args, cfd_graph_stored_type(result), lazy);
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
		function->call == CFD_CALL_HASH ? 0 : cfd_graph_stored_type(result);
	node.count = function->operands;
	if (list_length(args) != first + node.count || node.count > ARGS_MAX)
		return NONE;
	for (int i = 0; i < node.count; i++)
	{
		node.args[i] = cfd_graph_compile(graph, list_nth(args, first + i), lazy);
		if (node.args[i] == NONE || graph->nodes[node.args[i]].type == 0)
			return NONE;
	}
	return cfd_graph_add_node(graph, node);
}

static int
compile_function(Graph *graph, Oid oid, List *args, Oid result, bool lazy)
{
	const CfdFunction *function = cfd_function_of_values(oid);

	if (function == NULL || function->call == CFD_CALL_ORDER || function->call == CFD_CALL_HASH)
		return NONE;
	return cfd_graph_compile_call(graph, function, args, result, lazy);
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
	a = cfd_graph_add_unary(graph, CFD_PROGRAM_IS_NULL, graph->nodes[equal].args[0]);
	b = cfd_graph_add_unary(graph, CFD_PROGRAM_IS_NULL, graph->nodes[equal].args[1]);
	either = cfd_graph_add_binary(graph, CFD_PROGRAM_OR, a, b);
	both = cfd_graph_add_binary(graph, CFD_PROGRAM_AND, a, b);
	return cfd_graph_add_select(graph, either, cfd_graph_add_unary(graph, CFD_PROGRAM_NOT, both),
								cfd_graph_add_unary(graph, CFD_PROGRAM_NOT, equal));
}

static int
compile_nullif(Graph *graph, OpExpr *expr, bool lazy)
{
	int			equal = compile_function(graph, expr->opfuncid, expr->args, BOOLOID, lazy);
	int			value;

	if (equal == NONE)
		return NONE;
	value = graph->nodes[equal].args[0];
	return cfd_graph_add_select(graph, equal, cfd_graph_add_null(graph, graph->nodes[value].type), value);
}

/* Whether it is x = ANY or x <> ALL. */
static bool
asks_membership(const ScalarArrayOpExpr *expr)
{
	List	   *meanings = CFD_MEANINGS(expr->opno);
	int			strategy = meanings == NIL ? 0 : CFD_MEANING(linitial(meanings));

	return strategy == (expr->useOr ? BTEqualStrategyNumber : CFD_MEANING_NE);
}

/*
 * Number of elements of a constant list; -1 if it is not known yet or the list
 * is NULL.
 */
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

/*
 * Compiles x = ANY or x <> ALL (list) as a membership test. Returns NONE if it
 * is not one, or the list is short.
 */
static int
compile_among(Graph *graph, const ScalarArrayOpExpr *expr, bool lazy)
{
	Node	   *array = lsecond(expr->args);
	uint8		type = cfd_graph_stored_type(get_element_type(exprType(array)));
	int			elements = elements_of(array);
	int			value;
	int			list;
	int			among;

	if (!graph->compiler->lists || type == 0 || !cfd_graph_is_constant(array) || !asks_membership(expr) ||
		(elements >= 0 && elements <= SHORT_LIST) || elements > CFD_ROWS_MAX)
		return NONE;
	value = cfd_graph_compile(graph, linitial(expr->args), lazy);
	if (value == NONE || !cfd_graph_have_one_form(graph->nodes[value].type, type))
		return NONE;
	list = cfd_graph_add_list(graph, array, type);
	if (list == NONE)
		return NONE;
	among = cfd_graph_add_node(graph, (GraphNode) {.code = CFD_PROGRAM_AMONG,.operand = list,.count = 1,.args = {value}});
	return expr->useOr ? among : cfd_graph_add_unary(graph, CFD_PROGRAM_NOT, among);
}

/* x op ANY or ALL (array) */
static int
compile_array(Graph *graph, ScalarArrayOpExpr *expr, bool lazy)
{
	const CfdFunction *function = cfd_function_of_values(expr->opfuncid);
	Const	   *array = lsecond(expr->args);
	ArrayType  *values;
	Datum	   *datums;
	bool	   *nulls;
	int16		length;
	bool		by_value;
	char		alignment;
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
	if (cfd_family_code(ARR_ELEMTYPE(values)) == 0)
		return NONE;
	get_typlenbyvalalign(ARR_ELEMTYPE(values), &length, &by_value, &alignment);
	deconstruct_array(values, ARR_ELEMTYPE(values), length, by_value, alignment, &datums, &nulls, &count);
	for (int i = 0; i < count; i++)
	{
		Const	   *value = makeConst(ARR_ELEMTYPE(values), -1, InvalidOid, length, datums[i], nulls[i], by_value);
		int			test = cfd_graph_compile_call(graph, function, list_make2(linitial(expr->args), value), BOOLOID, lazy);

		all = i == 0 ? test : cfd_graph_add_binary(graph, expr->useOr ? CFD_PROGRAM_OR : CFD_PROGRAM_AND, all, test);
		if (all == NONE)
			return NONE;
		lazy = true;
	}
	return all;
}

/* ---------- other expressions ---------- */

static int
compile_boolean(Graph *graph, BoolExpr *expr, bool lazy)
{
	int			result = cfd_graph_compile(graph, linitial(expr->args), lazy);
	ListCell   *cell;

	if (expr->boolop == NOT_EXPR)
		return cfd_graph_add_unary(graph, CFD_PROGRAM_NOT, result);
	for_each_from(cell, expr->args, 1)
	{
		if (result == NONE)
			return NONE;
		result = cfd_graph_add_binary(graph, expr->boolop == AND_EXPR ? CFD_PROGRAM_AND : CFD_PROGRAM_OR,
									  result, cfd_graph_compile(graph, lfirst(cell), true));
	}
	return result;
}

static int
compile_truth(Graph *graph, BooleanTest *expr, bool lazy)
{
	int			a = cfd_graph_compile(graph, (Node *) expr->arg, lazy);

	switch (expr->booltesttype)
	{
		case IS_TRUE:
			return cfd_graph_add_unary(graph, CFD_PROGRAM_HOLDS, a);
		case IS_NOT_TRUE:
			return cfd_graph_add_unary(graph, CFD_PROGRAM_NOT, cfd_graph_add_unary(graph, CFD_PROGRAM_HOLDS, a));
		case IS_FALSE:
			return cfd_graph_add_unary(graph, CFD_PROGRAM_HOLDS, cfd_graph_add_unary(graph, CFD_PROGRAM_NOT, a));
		case IS_NOT_FALSE:
			a = cfd_graph_add_unary(graph, CFD_PROGRAM_HOLDS, cfd_graph_add_unary(graph, CFD_PROGRAM_NOT, a));
			return cfd_graph_add_unary(graph, CFD_PROGRAM_NOT, a);
		case IS_UNKNOWN:
			return cfd_graph_add_unary(graph, CFD_PROGRAM_IS_NULL, a);
		case IS_NOT_UNKNOWN:
			return cfd_graph_add_unary(graph, CFD_PROGRAM_NOT, cfd_graph_add_unary(graph, CFD_PROGRAM_IS_NULL, a));
	}
	return NONE;
}

static int
compile_null_test(Graph *graph, NullTest *expr, bool lazy)
{
	int			a;

	if (expr->argisrow)
		return NONE;
	a = cfd_graph_add_unary(graph, CFD_PROGRAM_IS_NULL, cfd_graph_compile(graph, (Node *) expr->arg, lazy));
	return expr->nulltesttype == IS_NULL ? a : cfd_graph_add_unary(graph, CFD_PROGRAM_NOT, a);
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
		/* The inner CASE has its own test value. */
		CaseExpr   *copy = copyObject((CaseExpr *) node);

		copy->arg = (Expr *) replace_test_value((Node *) copy->arg, value);
		return (Node *) copy;
	}
	return expression_tree_mutator(node, replace_test_value, value);
}

/*
 * Compiles the branches, starting with the last one. CASE x WHEN y is CASE
 * WHEN x = y, with x computed once.
 */
static int
compile_branches(Graph *graph, CaseExpr *expr, int number, bool lazy)
{
	CaseWhen   *when;
	Node	   *test;
	int			condition;
	int			yes;

	if (number == list_length(expr->args))
		return expr->defresult != NULL ? cfd_graph_compile(graph, (Node *) expr->defresult, lazy)
			: cfd_graph_add_null(graph, cfd_graph_stored_type(expr->casetype));
	when = list_nth_node(CaseWhen, expr->args, number);
	test = (Node *) when->expr;
	if (expr->arg != NULL)
		test = replace_test_value(test, expr->arg);
	condition = cfd_graph_compile(graph, test, lazy);
	yes = condition == NONE ? NONE : cfd_graph_compile(graph, (Node *) when->result, true);
	return yes == NONE ? NONE
		: cfd_graph_add_select(graph, condition, yes, compile_branches(graph, expr, number + 1, true));
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
	int			value = cfd_graph_compile(graph, list_nth(args, number), lazy);
	int			rest;

	if (value == NONE || number + 1 == list_length(args))
		return value;
	rest = compile_coalesce(graph, args, number + 1, true);
	return cfd_graph_add_select(graph, cfd_graph_add_unary(graph, CFD_PROGRAM_IS_NULL, value), rest, value);
}

static int
compile_inside(Graph *graph, Node *expr, bool lazy)
{
	switch (nodeTag(expr))
	{
		case T_Const:
			if (((Const *) expr)->consttype == BOOLOID)
				return cfd_graph_add_boolean(graph, ((Const *) expr)->constisnull,
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
			if (cfd_graph_stored_type(((RelabelType *) expr)->resulttype) != cfd_graph_stored_type(exprType((Node *) ((RelabelType *) expr)->arg)))
				return NONE;
			return cfd_graph_compile(graph, (Node *) ((RelabelType *) expr)->arg, lazy);
		default:
			return NONE;
	}
}

/*
 * Whether any node added since node number `from` calls an operation or opens
 * a cell.
 */
bool
cfd_graph_has_call(Graph *graph, int from)
{
	for (int i = from; i < graph->count; i++)
	{
		const GraphNode *node = &graph->nodes[i];

		if (node->code == CFD_PROGRAM_CALL || node->code == CFD_PROGRAM_AMONG ||
			(node->code == CFD_PROGRAM_INPUT && graph->compiler->inputs[node->operand].cell))
			return true;
	}
	return false;
}

bool
cfd_graph_has_our_functions(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, FuncExpr) && cfd_function_of_values(((FuncExpr *) node)->funcid) != NULL)
		return true;
	if (IsA(node, OpExpr) || IsA(node, DistinctExpr) || IsA(node, NullIfExpr))
	{
		set_opfuncid((OpExpr *) node);
		if (cfd_function_of_values(((OpExpr *) node)->opfuncid) != NULL)
			return true;
	}
	if (IsA(node, ScalarArrayOpExpr))
	{
		set_sa_opfuncid((ScalarArrayOpExpr *) node);
		if (cfd_function_of_values(((ScalarArrayOpExpr *) node)->opfuncid) != NULL)
			return true;
	}
	return expression_tree_walker(node, cfd_graph_has_our_functions, context);
}

/* A cell becomes an input, which the keeper opens. */
static int
compile_cell(Graph *graph, Node *expr, bool lazy)
{
	while (IsA(expr, RelabelType) && cfd_cell_code(exprType((Node *) ((RelabelType *) expr)->arg)) != 0)
		expr = (Node *) ((RelabelType *) expr)->arg;
	return cfd_graph_add_input(graph, expr, lazy);
}

/*
 * Compiles an expression, or makes it an input that PostgreSQL evaluates.
 * Returns NONE if neither is possible.
 */
int
cfd_graph_compile(Graph *graph, Node *expr, bool lazy)
{
	int			nodes = graph->count;
	int			inputs = graph->compiler->count;
	Oid			type = exprType(expr);
	int			result;

	if (cfd_cell_code(type) != 0)
		return compile_cell(graph, expr, lazy);
	if (type != BOOLOID && cfd_graph_stored_type(type) == 0)
		return NONE;
	/*
	 * A purely plain expression is best evaluated by PostgreSQL, if that is
	 * permitted here.
	 */
	if (type == BOOLOID && !IsA(expr, Const) && !cfd_graph_has_our_functions(expr, NULL))
	{
		result = cfd_graph_add_input(graph, expr, lazy);
		if (result != NONE)
			return result;
	}
	result = compile_inside(graph, expr, lazy);
	if (result != NONE)
		return result;
	graph->count = nodes;
	graph->compiler->count = inputs;
	return cfd_graph_add_input(graph, expr, lazy);
}
