/*
 * compile.c
 *	  From the graph of an expression (graph.h) to instructions: see compile.h. Handles are
 *	  in program/programs.c.
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
#include "program/graph.h"
#include "program/registry.h"
#include "value/types.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

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
		program->calls += program->code[i].code == CFD_PROGRAM_CALL || program->code[i].code == CFD_PROGRAM_AMONG;
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

	if (root != NONE && cfd_graph_has_call(graph, 0))
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
	/* A sub-select is most of the work, and not the keeper's. */
	if (contain_subplans(expr))
		return false;
	return cfd_graph_has_our_functions(expr, NULL) && cfd_compile(cfd_compiler_with_lists(), expr) != NULL;
}
