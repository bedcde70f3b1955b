/*
 * node.c
 *	  Executes ConfideLookup; see lookup.h.
 *
 * The rows of a batch are copied, searched for together, and returned one by
 * one. During an EvalPlanQual recheck, rows are passed through.
 *
 * Invariant: as in lookup.h.
 */
#include "postgres.h"

#include "batch/driver.h"
#include "batch/rows.h"
#include "compat/explain.h"
#include "executor/executor.h"
#include "index/ahead.h"
#include "miscadmin.h"
#include "wire/columns.h"
#include "node/lookup/lookup.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"

typedef struct CfdLookupState
{
	CustomScanState css;
	CfdDriver	driver;			/* reads the child's rows */
	List	   *keys;			/* ExprStates of the index columns' values */
	Oid			types[CFD_OUTER_COLUMNS_MAX];
	struct CfdArms *group;		/* the batched search */
	CfdRows		batch;
	uint64		rows;			/* for EXPLAIN ANALYZE */
} CfdLookupState;

static const CfdDriverMethods cfd_lookup_driver;

static inline CfdLookupState *
cfd_lookup_of(CfdDriver *driver)
{
	return (CfdLookupState *) ((char *) driver - offsetof(CfdLookupState, driver));
}

static void
cfd_lookup_begin(CustomScanState *node, EState *estate, int flags)
{
	CfdLookupState *state = (CfdLookupState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	ListCell   *cell;

	outerPlanState(state) = ExecInitNode(outerPlan(plan), estate, flags);
	state->keys = ExecInitExprList(plan->custom_exprs, &node->ss.ps);
	foreach(cell, plan->custom_exprs)
		state->types[foreach_current_index(cell)] = exprType(lfirst(cell));
	state->group = cfd_outer_begin(estate, intVal(list_nth(plan->custom_private, CFD_LOOKUP_INNER)),
								   list_length(state->keys));
	cfd_rows_init(&state->batch, node, Min(cfd_batch_rows, CFD_OUTER_ROWS_MAX));
	for (int i = 0; i < 2; i++)
		cfd_buffer_init(&state->driver.buffers[i], 0, NULL, 0);
	state->driver.methods = &cfd_lookup_driver;
	state->driver.node = &node->ss.ps;
	state->driver.child = outerPlanState(state);
	state->driver.first_rows = Min(CFD_BATCH_FIRST_ROWS, state->batch.room);
	cfd_driver_begin(&state->driver);
}

/* ---------- a batch ---------- */

/* Copies a row into the batch. */
static bool
cfd_lookup_add(CfdDriver *driver, CfdBuffer *buffer, TupleTableSlot *row)
{
	CfdLookupState *state = cfd_lookup_of(driver);

	CHECK_FOR_INTERRUPTS();
	return cfd_rows_add(&state->batch, buffer->rows++, row);
}

/* Searches for the keys of all rows in the batch. */
static void
cfd_lookup_ask(CfdDriver *driver, CfdBuffer *buffer)
{
	CfdLookupState *state = cfd_lookup_of(driver);
	ExprContext *context = state->css.ss.ps.ps_ExprContext;

	cfd_outer_clear(state->group);
	if (buffer->rows < 2)
		return;
	for (int row = 0; row < buffer->rows; row++)
	{
		Datum		values[CFD_OUTER_COLUMNS_MAX];
		bool		nulls[CFD_OUTER_COLUMNS_MAX];
		ListCell   *cell;

		ResetExprContext(context);
		context->ecxt_scantuple = state->batch.slots[row];
		foreach(cell, state->keys)
		{
			int			at = foreach_current_index(cell);

			values[at] = ExecEvalExprSwitchContext(lfirst(cell), context, &nulls[at]);
		}
		cfd_outer_row(state->group, state->types, values, nulls);
	}
	cfd_outer_ask(state->group);
	state->rows += buffer->rows;
}

static void
cfd_lookup_take(CfdDriver *driver, CfdBuffer *buffer)
{
	(void) driver;
	buffer->decided = buffer->good = buffer->rows;
	buffer->next = 0;
}

static const CfdDriverMethods cfd_lookup_driver = {
	.ask = cfd_lookup_ask,
	.take = cfd_lookup_take,
	.add = cfd_lookup_add,
};

/* ---------- execution ---------- */

static TupleTableSlot *
cfd_lookup_next_row(CustomScanState *node)
{
	CfdLookupState *state = (CfdLookupState *) node;
	CfdBuffer  *buffer = &state->driver.buffers[state->driver.current];

	if (buffer->next == buffer->good)
		state->driver.batch_rows = node->ss.ps.state->es_epq_active != NULL ? 1 :
			Min(state->driver.batch_rows, state->batch.room);
	buffer = cfd_driver_next(&state->driver);
	return buffer == NULL ? NULL : state->batch.slots[buffer->next++];
}

static void
cfd_lookup_rescan(CustomScanState *node)
{
	CfdLookupState *state = (CfdLookupState *) node;

	cfd_driver_restart(&state->driver, true);
	if (outerPlanState(state)->chgParam == NULL)
		ExecReScan(outerPlanState(state));
}

static void
cfd_lookup_end(CustomScanState *node)
{
	CfdLookupState *state = (CfdLookupState *) node;

	cfd_rows_end(&state->batch);
	ExecEndNode(outerPlanState(state));
}

static void
cfd_lookup_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	CfdLookupState *state = (CfdLookupState *) node;
	const CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	const List *index = list_nth(plan->custom_private, CFD_LOOKUP_INDEX);

	ExplainPropertyText("Looked Up In", get_rel_name(linitial_oid(index)), es);
	if (!es->analyze)
		return;
	ExplainPropertyInteger("Rows Looked Up", NULL, state->rows, es);
	ExplainPropertyInteger("Round Trips", NULL, cfd_outer_round_trips(state->group), es);
}

static const CustomExecMethods cfd_lookup_exec_methods = {
	.CustomName = "ConfideLookup",
	.BeginCustomScan = cfd_lookup_begin,
	.ExecCustomScan = cfd_lookup_next_row,
	.EndCustomScan = cfd_lookup_end,
	.ReScanCustomScan = cfd_lookup_rescan,
	.ExplainCustomScan = cfd_lookup_explain,
};

static Node *
cfd_lookup_create_state(CustomScan *plan)
{
	CfdLookupState *state = palloc0(sizeof(CfdLookupState));

	NodeSetTag(state, T_CustomScanState);
	state->css.flags = plan->flags;
	state->css.methods = &cfd_lookup_exec_methods;
	return (Node *) state;
}

const CustomScanMethods cfd_lookup_methods = {
	.CustomName = "ConfideLookup",
	.CreateCustomScanState = cfd_lookup_create_state,
};
