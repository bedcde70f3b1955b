/*
 * execute.c
 *	  Executor startup, shutdown and rescan of ConfideAggregate; see
 *	  aggregate.h. The other files are listed in state.h.
 *
 * Invariants: as in state.h.
 */
#include "postgres.h"

#include "session/channel.h"
#include "executor/executor.h"
#include "node/aggregate/state.h"

static void
cfd_aggregate_begin_driver(AggregateState *state, PlanState *child)
{
	CfdDriver  *driver = &state->driver;

	for (int i = 0; i < 2; i++)
		cfd_buffer_init(&driver->buffers[i], 0, NULL, 0);
	driver->methods = state->evaluates || state->stage == CFD_AGG_FINAL ? &cfd_aggregate_driver : &cfd_aggregate_stored_driver;
	driver->node = &state->css.ss.ps;
	driver->child = child;
	/* No row is returned before all have been seen. */
	driver->first_rows = CFD_BATCH_ROWS_MAX;
	cfd_driver_begin(driver);
}

static void
cfd_aggregate_begin(CustomScanState *node, EState *estate, int eflags)
{
	AggregateState *state = (AggregateState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	PlanState  *child = ExecInitNode(linitial(plan->custom_plans), estate, eflags);
	List	   *having = list_nth(plan->custom_private, CFD_AGG_HAVING);

	node->custom_ps = list_make1(child);
	state->stage = intVal(list_nth(plan->custom_private, CFD_AGG_STAGE));
	state->share = intVal(list_nth(plan->custom_private, CFD_AGG_SHARE));
	state->kept = intVal(list_nth(plan->custom_private, CFD_AGG_KEPT));
	cfd_aggregate_describe(state, plan);
	if (having != NIL)
	{
		state->having_compiler = cfd_compiler();
		state->having = cfd_compile_quals(state->having_compiler, having);
		if (state->having == NULL)
			elog(ERROR, "confide: the condition on groups cannot be compiled");
	}
	for (int i = 0; i < state->column_count; i++)
	{
		Column	   *column = &state->columns[i];

		if (IsA(column->expr, Var) && ((Var *) column->expr)->varno == OUTER_VAR &&
			((Var *) column->expr)->varattno > 0)
		{
			column->attribute = ((Var *) column->expr)->varattno;
			state->driver.last_attribute = Max(state->driver.last_attribute, column->attribute);
		}
		else
		{
			column->state = ExecInitExpr(column->expr, &node->ss.ps);
			state->evaluates |= column->form != FORM_CONSTANT;
		}
		if (column->form == FORM_CELL)
		{
			column->cells = cfd_cells_create();
			cfd_cells_reserve(column->cells, CFD_BATCH_ROWS_MAX);
		}
		else if (column->form != FORM_CONSTANT)
		{
			column->values = palloc(CFD_BATCH_ROWS_MAX * sizeof(CfdFid));
			column->nulls = palloc(CFD_BATCH_ROWS_MAX);
		}
	}
	initStringInfo(&state->body);
	cfd_aggregate_begin_driver(state, child);
}

static void
close_stores(AggregateState *state)
{
	if (state->input != NULL)
		tuplestore_end(state->input);
	if (state->left != NULL)
		tuplestore_end(state->left);
	state->input = state->left = NULL;
}

static void
cfd_aggregate_end(CustomScanState *node)
{
	AggregateState *state = (AggregateState *) node;
	CfdWireAggregateForget body = {.handle = state->handle};

	/*
	 * If the message cannot be sent now, the keeper forgets the aggregation at
	 * the end of the statement.
	 */
	if (state->generation != 0 && state->generation == cfd_channel.generation)
		cfd_try_send(CFD_KIND_AGGREGATE_FORGET, &body, sizeof(body), state->total_rows > CFD_FEW_VALUES);
	state->generation = 0;
	close_stores(state);
	ExecEndNode(linitial(node->custom_ps));
}

static bool
recheck(ScanState *node, TupleTableSlot *slot)
{
	(void) node;
	(void) slot;
	return true;
}

static TupleTableSlot *
execute(CustomScanState *node)
{
	return ExecScan(&node->ss, cfd_aggregate_next, recheck);
}

static TupleTableSlot *
execute_partial(CustomScanState *node)
{
	return ExecScan(&node->ss, cfd_partial_next, recheck);
}

static void
cfd_aggregate_rescan(CustomScanState *node)
{
	AggregateState *state = (AggregateState *) node;
	PlanState  *child = linitial(node->custom_ps);

	close_stores(state);
	state->filled = state->done = false;
	state->group = state->group_count = 0;
	state->passes = 0;
	ExecScanReScan(&node->ss);
	if (node->ss.ps.chgParam != NULL)
		UpdateChangedParamSet(child, node->ss.ps.chgParam);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

static const CustomExecMethods methods = {
	.CustomName = "ConfideAggregate",
	.BeginCustomScan = cfd_aggregate_begin,
	.ExecCustomScan = execute,
	.EndCustomScan = cfd_aggregate_end,
	.ReScanCustomScan = cfd_aggregate_rescan,
	.ExplainCustomScan = cfd_aggregate_explain
};

static const CustomExecMethods partial_methods = {
	.CustomName = "ConfidePartialAggregate",
	.BeginCustomScan = cfd_aggregate_begin,
	.ExecCustomScan = execute_partial,
	.EndCustomScan = cfd_aggregate_end,
	.ReScanCustomScan = cfd_aggregate_rescan,
	.ExplainCustomScan = cfd_aggregate_explain
};

static Node *
cfd_aggregate_new_state(const CustomExecMethods *of)
{
	AggregateState *state = palloc0(sizeof(AggregateState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = of;
	return (Node *) state;
}

Node *
cfd_aggregate_create_state(CustomScan *plan)
{
	(void) plan;
	return cfd_aggregate_new_state(&methods);
}

Node *
cfd_partial_create_state(CustomScan *plan)
{
	(void) plan;
	return cfd_aggregate_new_state(&partial_methods);
}
