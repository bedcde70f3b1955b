/*
 * begin.c
 *	  The start of a batched scan: its programs, the columns that it keeps, and its
 *	  buffers.
 *
 * Invariant: as of scan.h.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "node/scan/pairs.h"
#include "node/scan/state.h"
#include "optimizer/optimizer.h"

typedef struct Lift
{
	CfdScanState *state;
	int			columns;		/* of the child */
} Lift;

/*
 * Makes programs of the protected expressions in the target list, which are always
 * evaluated; their places are taken by Vars of the computed columns.
 */
static Node *
lift(Node *node, void *context)
{
	Lift	   *lifted = context;
	CfdProgram *program;

	if (node == NULL)
		return NULL;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
		case T_Param:
			return node;
			/* These evaluate their arguments always. */
		case T_TargetEntry:
		case T_List:
			return expression_tree_mutator(node, lift, context);
		default:
			break;
	}
	/* One message takes so many; what is more is evaluated row by row. */
	program = list_length(lifted->state->computed) == CFD_COLUMNS_MAX ? NULL
		: cfd_compile(lifted->state->project_inputs, node);
	if (program != NULL && program->result == CFD_RESULT_FID)
	{
		lifted->state->computed = lappend(lifted->state->computed, program);
		lifted->state->computed_types = lappend_oid(lifted->state->computed_types, exprType(node));
		return (Node *) makeVar(INDEX_VAR, lifted->columns + list_length(lifted->state->computed),
								exprType(node), exprTypmod(node), exprCollation(node), 0);
	}
	if (IsA(node, FuncExpr) || IsA(node, OpExpr))
		return expression_tree_mutator(node, lift, context);
	return node;
}

/* The child's columns that are needed after the keeper's answer. */
static bool *
kept_columns(CfdScanState *state, List *targets, int columns)
{
	bool	   *kept = palloc0(columns * sizeof(bool));
	List	   *vars = pull_var_clause((Node *) targets, PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS);
	ListCell   *cell;

	vars = list_concat(vars, pull_var_clause((Node *) state->css.ss.ps.plan->qual, PVC_RECURSE_PLACEHOLDERS));
	for (int i = 0; i < state->project_inputs->count; i++)
		vars = list_concat(vars, pull_var_clause((Node *) state->project_inputs->inputs[i].expr, PVC_RECURSE_PLACEHOLDERS));
	foreach(cell, vars)
	{
		Var		   *var = lfirst(cell);

		if (var->varno == INDEX_VAR && var->varattno > 0 && var->varattno <= columns)
			kept[var->varattno - 1] = true;
	}
	return kept;
}

/* The child's row, then the computed columns. */
static TupleDesc
row_description(CfdScanState *state, TupleDesc child)
{
	TupleDesc	row = CreateTemplateTupleDesc(child->natts + list_length(state->computed));
	ListCell   *cell;

	for (int i = 0; i < child->natts; i++)
		TupleDescCopyEntry(row, i + 1, child, i + 1);
	foreach(cell, state->computed_types)
		TupleDescInitEntry(row, child->natts + 1 + foreach_current_index(cell), NULL, lfirst_oid(cell), -1, 0);
	return row;
}

/* The last attribute of the child's slot that is kept, or that quals look at. */
static int
last_needed(const CfdScanState *state, const bool *kept, int columns)
{
	List	   *vars = NIL;
	ListCell   *cell;
	int			last = 0;

	for (int i = 0; i < columns; i++)
	{
		if (kept[i])
			last = i + 1;
	}
	for (int i = 0; i < state->qual_inputs->count; i++)
		vars = list_concat(vars, pull_var_clause((Node *) state->qual_inputs->inputs[i].expr, PVC_RECURSE_PLACEHOLDERS));
	foreach(cell, vars)
		last = Max(last, ((Var *) lfirst(cell))->varattno);
	return last;
}

static void
make_scan_buffers(CfdScanState *state, const bool *kept, int columns)
{
	for (int i = 0; i < 2; i++)
	{
		CfdBuffer  *buffer = &state->driver.buffers[i];

		cfd_buffer_init(buffer, columns, kept, list_length(state->computed));
		buffer->paired = state->loop != NULL;
		if (state->filter != NULL)
			buffer->quals = cfd_inputs_create(state->qual_inputs, &state->css.ss.ps);
		if (state->computed != NIL)
			buffer->projected = cfd_inputs_create(state->project_inputs, &state->css.ss.ps);
	}
}

static void
begin_driver(CfdScanState *state, PlanState *child, const bool *kept, int columns)
{
	CfdDriver  *driver = &state->driver;

	driver->methods = state->loop != NULL ? &cfd_scan_pairs_driver : &cfd_scan_driver;
	driver->child = child;
	driver->last_attribute = last_needed(state, kept, columns);
	driver->first_rows = CFD_BATCH_FIRST_ROWS;
	driver->node = &state->css.ss.ps;
	driver->reads_ahead = true;
	driver->asks_ahead = state->wanted == 0;
	make_scan_buffers(state, kept, columns);
	cfd_driver_begin(driver);
}

void
cfd_scan_begin(CustomScanState *node, EState *estate, int eflags)
{
	CfdScanState *state = (CfdScanState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	PlanState  *child = ExecInitNode(linitial(scan->custom_plans), estate, eflags);
	TupleDesc	rows = ExecGetResultType(child);
	Lift		lifted = {.state = state,.columns = rows->natts};
	List	   *targets;
	bool	   *kept;

	node->custom_ps = list_make1(child);
	state->loop = cfd_pairs_begin(child);
	state->qual_inputs = cfd_compiler_with_lists();
	state->project_inputs = cfd_compiler_with_lists();
	if (scan->custom_exprs != NIL)
	{
		state->filter = cfd_compile_quals(state->qual_inputs, scan->custom_exprs);
		if (state->filter == NULL)
			elog(ERROR, "confide: quals do not compile any more");
	}
	targets = scan->scan.plan.targetlist;
	/* Quals that are evaluated row by row come first: expressions may rely on them. */
	if (scan->scan.plan.qual == NIL)
		targets = (List *) lift((Node *) targets, &lifted);
	kept = kept_columns(state, targets, rows->natts);
	/* Without a projection the child's row is the result: all of it. */
	if (node->ss.ps.ps_ProjInfo == NULL)
		memset(kept, true, rows->natts);
	state->row = ExecAllocTableSlot(&estate->es_tupleTable, row_description(state, rows), &TTSOpsVirtual);
	if (node->ss.ps.ps_ProjInfo != NULL)
		state->projection = ExecBuildProjectionInfo(targets, node->ss.ps.ps_ExprContext,
													node->ss.ps.ps_ResultTupleSlot, &node->ss.ps,
													state->row->tts_tupleDescriptor);
	state->ends_early = boolVal(linitial(scan->custom_private));
	state->wanted = state->ends_early ? 1 : 0;
	begin_driver(state, child, kept, rows->natts);
}
