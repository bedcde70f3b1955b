/*
 * graph.c
 *	  Expressions as a graph, in which equal parts are one node: its nodes, and the inputs
 *	  that PostgreSQL evaluates: see graph.h.
 *
 * Invariant: as in graph.h.
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
#include "program/graph.h"
#include "program/registry.h"
#include "value/types.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

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

/* varchar values are text values. */
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

/* Whether equal values of two types have one form for the keeper. */
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

/* Whether it may be evaluated although PostgreSQL would perhaps not come to it. */
bool
cfd_harmless(Node *expr)
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

int
cfd_graph_add_input(Graph *graph, Node *expr, bool lazy)
{
	CfdCompiler *compiler = graph->compiler;
	Oid			type = exprType(expr);
	uint8		code = cfd_graph_stored_type(type);
	bool		constant = cfd_graph_is_constant(expr);
	int			number;

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
		compiler->inputs[number] = (CfdInput) {.expr = (Expr *) expr,.type = code,.constant = constant};
		compiler->count++;
	}
	return cfd_graph_add_node(graph, (GraphNode) {.code = CFD_PROGRAM_INPUT,.type = code,.operand = number});
}

/* A list for all rows. */
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
