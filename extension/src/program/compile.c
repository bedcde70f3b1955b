/*
 * compile.c
 *	  Manages the nodes and inputs of an expression graph (graph.h) and
 *	  emits instructions; see compile.h. Handles are managed in
 *	  program/programs.c.
 *
 * Invariants: as in compile.h and graph.h.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "cell/cell.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "ops/evaluate.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "program/compile.h"
#include "program/graph.h"
#include "program/registry.h"
#include "soft/soft.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "value/types.h"
#include "wire/wire.h"

/* ---------- the graph ---------- */

int
cfd_graph_add_node(Graph *graph, GraphNode node)
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

int
cfd_graph_add_unary(Graph *graph, uint8 code, int a)
{
	if (a == NONE)
		return NONE;
	return cfd_graph_add_node(graph, (GraphNode) {.code = code,.count = 1,.args = {a}});
}

int
cfd_graph_add_binary(Graph *graph, uint8 code, int a, int b)
{
	if (a == NONE || b == NONE)
		return NONE;
	return cfd_graph_add_node(graph, (GraphNode) {.code = code,.count = 2,.args = {a, b}});
}

int
cfd_graph_add_select(Graph *graph, int condition, int yes, int no)
{
	if (condition == NONE || yes == NONE || no == NONE)
		return NONE;
	if (graph->nodes[yes].type != graph->nodes[no].type)
		return NONE;
	return cfd_graph_add_node(graph, (GraphNode) {.code = CFD_PROGRAM_SELECT,.type = graph->nodes[yes].type,
					.count = 3,.args = {condition, yes, no}});
}

/* ---------- inputs ---------- */

/* Type code in which values are stored; varchar is stored as text. */
uint8
cfd_graph_stored_type(Oid type)
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

/* Whether equal values of the two types have the same representation in the keeper. */
bool
cfd_graph_have_one_form(uint8 a, uint8 b)
{
	return a == b || (is_whole(a) && is_whole(b)) || (is_float(a) && is_float(b));
}

bool
cfd_graph_is_constant(Node *expr)
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

/*
 * Whether an expression may be evaluated although PostgreSQL might not have
 * reached it.
 */
bool
cfd_harmless(Node *expr)
{
	if (IsA(expr, FuncExpr))
	{
		FuncExpr   *call = (FuncExpr *) expr;
		const CfdFunction *function = cfd_function(call->funcid);

		/*
		 * Converting a plain value into a protected one sends a message and
		 * cannot fail.
		 */
		if (function != NULL && function->call == CFD_CALL_FROM_PLAIN && function->second == 0)
			expr = (Node *) call->args;
	}
	return !contain_volatile_functions(expr) && !is_risky(expr, NULL);
}

int
cfd_graph_add_input(Graph *graph, Node *expr, bool lazy)
{
	CfdCompiler *compiler = graph->compiler;
	Oid			type = exprType(expr);
	uint8		code = cfd_graph_stored_type(type);
	bool		constant = cfd_graph_is_constant(expr);
	uint8		sealed = code != 0 ? 0 : cfd_cell_code(type) != 0 ? cfd_cell_code(type) : cfd_soft_code(type);
	bool		cell = sealed != 0;
	int			number;

	if (cell)
		code = sealed == CFD_TYPE_VARCHAR ? CFD_TYPE_TEXT : sealed;
	if (code == 0 && type != BOOLOID)
		return NONE;
	if (lazy && !constant && !IsA(expr, Var) && !cfd_harmless(expr))
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
		compiler->inputs[number] = (CfdInput) {
			.expr = (Expr *) expr,.type = code,.constant = constant,.cell = cell
		};
		compiler->count++;
	}
	return cfd_graph_add_node(graph, (GraphNode) {.code = CFD_PROGRAM_INPUT,.type = code,.operand = number});
}

/* Adds a list that applies to all rows. */
int
cfd_graph_add_list(Graph *graph, Node *array, uint8 type)
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

int
cfd_graph_add_boolean(Graph *graph, bool isnull, bool value)
{
	return cfd_graph_add_node(graph, (GraphNode) {.code = CFD_PROGRAM_BOOLEAN,.operand = isnull ? 2 : value});
}

int
cfd_graph_add_null(Graph *graph, uint8 type)
{
	Oid			oid;
	int16		length;
	bool		by_value;

	if (type == 0)
		return cfd_graph_add_boolean(graph, true, false);
	oid = cfd_type_oid(type);
	get_typlenbyval(oid, &length, &by_value);
	return cfd_graph_add_input(graph, (Node *) makeNullConst(oid, -1, InvalidOid), true);
}

/* Flags that describe an input in a plan. */
#define INPUT_CONSTANT 1
#define INPUT_LIST 2
#define INPUT_CELL 4

typedef struct Emitter
{
	Graph	   *graph;
	StringInfoData code;
	StringInfoData text;
	int			depth;
	int			locals;
	bool		too_large;
} Emitter;

/* ---------- instructions ---------- */

static void
instruction(Emitter *emitter, uint8 code, uint16 operand, int32 immediate)
{
	CfdWireInstruction made = {.code = code,.operand = operand,.immediate = immediate};

	appendBinaryStringInfo(&emitter->code, (const char *) &made, sizeof(made));
	if (emitter->code.len > CFD_PROGRAM_INSTRUCTIONS_MAX * sizeof(made))
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
	program->code = (const CfdWireInstruction *) emitter.code.data;
	program->instructions = emitter.code.len / sizeof(CfdWireInstruction);
	program->text = emitter.text.data;
	for (int i = 0; i < program->instructions; i++)
		program->calls += program->code[i].code == CFD_PROGRAM_CALL || program->code[i].code == CFD_PROGRAM_AMONG ||
			(program->code[i].code == CFD_PROGRAM_INPUT && graph->compiler->inputs[program->code[i].operand].cell);
	return program;
}

/* ---------- programs in plans ---------- */

/*
 * The stored form consists of lists of integers and a string; inputs are
 * stored separately.
 */
List *
cfd_program_list(const CfdProgram *program)
{
	List	   *head = list_make3_int(program->result, program->type, program->calls);
	List	   *code = NIL;
	List	   *inputs = NIL;

	for (int i = 0; i < program->instructions; i++)
	{
		code = lappend_int(code, program->code[i].code);
		code = lappend_int(code, program->code[i].operand);
		code = lappend_int(code, program->code[i].immediate);
	}
	for (int i = 0; i < program->compiler->count; i++)
	{
		const CfdInput *input = &program->compiler->inputs[i];

		inputs = lappend_int(inputs, input->type);
		inputs = lappend_int(inputs, (input->constant ? INPUT_CONSTANT : 0) | (input->list ? INPUT_LIST : 0) |
							 (input->cell ? INPUT_CELL : 0));
	}
	return list_make4(head, code, inputs, makeString(program->text));
}

List *
cfd_program_inputs(const CfdProgram *program)
{
	List	   *exprs = NIL;

	for (int i = 0; i < program->compiler->count; i++)
		exprs = lappend(exprs, program->compiler->inputs[i].expr);
	return exprs;
}

static void
read_inputs(CfdCompiler *compiler, const List *described, const List *exprs)
{
	ListCell   *cell;

	Assert(list_length(described) == 2 * list_length(exprs));
	foreach(cell, exprs)
	{
		int			number = foreach_current_index(cell);
		int			flags = list_nth_int(described, 2 * number + 1);

		compiler->inputs[compiler->count++] = (CfdInput) {
			.expr = lfirst(cell),
			.type = list_nth_int(described, 2 * number),
			.constant = (flags & INPUT_CONSTANT) != 0,
			.list = (flags & INPUT_LIST) != 0,
			.cell = (flags & INPUT_CELL) != 0
		};
	}
}

CfdProgram *
cfd_program_of_list(const List *list, const List *inputs)
{
	const List *head = linitial(list);
	const List *code = lsecond(list);
	CfdProgram *program = palloc0(sizeof(CfdProgram));
	CfdWireInstruction *to = palloc(Max(list_length(code) / 3, 1) * sizeof(CfdWireInstruction));

	program->compiler = cfd_compiler();
	program->result = list_nth_int(head, 0);
	program->type = list_nth_int(head, 1);
	program->calls = list_nth_int(head, 2);
	program->instructions = list_length(code) / 3;
	for (int i = 0; i < program->instructions; i++)
		to[i] = (CfdWireInstruction) {
			.code = list_nth_int(code, 3 * i),
			.operand = list_nth_int(code, 3 * i + 1),
			.immediate = list_nth_int(code, 3 * i + 2)
		};
	program->code = to;
	program->text = strVal(list_nth(list, 3));
	read_inputs(program->compiler, lthird(list), inputs);
	return program;
}

/* ---------- compiling ---------- */

static Graph
new_graph(CfdCompiler *compiler)
{
	return (Graph) {.compiler = compiler,.nodes = palloc(NODES_MAX * sizeof(GraphNode))};
}

/*
 * Returns the program. If there is none, or it contains no operations, returns
 * NULL and removes its inputs.
 */
static CfdProgram *
finish_if_useful(Graph *graph, int root, int inputs)
{
	CfdProgram *program = NULL;

	if (root != NONE && cfd_graph_has_call(graph, 0))
		program = finish(graph, root, CFD_CALL_EVAL);
	if (program != NULL && program->calls == 0)
		program = NULL;
	if (program == NULL)
		graph->compiler->count = inputs;
	pfree(graph->nodes);
	return program;
}

/* ---------- public functions ---------- */

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

	return finish_if_useful(&graph, cfd_graph_compile(&graph, expr, false), inputs);
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
		int			qual = cfd_graph_compile(&graph, lfirst(cell), foreach_current_index(cell) > 0);

		qual = cfd_graph_add_unary(&graph, CFD_PROGRAM_HOLDS, qual);
		all = foreach_current_index(cell) == 0 ? qual : cfd_graph_add_binary(&graph, CFD_PROGRAM_AND, all, qual);
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
		: cfd_graph_compile_call(&graph, function, args, get_func_rettype(oid), false);
	CfdProgram *program = root == NONE ? NULL : finish(&graph, root, function->call);

	if (program == NULL)
		compiler->count = inputs;
	pfree(graph.nodes);
	return program;
}

bool
cfd_compilable(Node *expr)
{
	if (exprType(expr) != BOOLOID && cfd_type_code(exprType(expr)) == 0)
		return false;
	/* Most of the work of a sub-select is not done by the keeper. */
	if (contain_subplans(expr))
		return false;
	return cfd_graph_has_our_functions(expr, NULL) && cfd_compile(cfd_compiler_with_lists(), expr) != NULL;
}
