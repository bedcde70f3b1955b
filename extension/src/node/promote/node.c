/*
 * node.c
 *	  Executes ConfidePromote; see promote.h.
 *
 * The rows of a batch are copied, promoted, and returned one by one. A batch
 * has been written when the row after it is requested, or when the plan ends.
 * Rows are passed through one by one without promotion during an EvalPlanQual
 * recheck, and while an outer statement holds a batch, whose trigger runs this
 * one.
 *
 * Invariants: as in promote.h.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "compat/explain.h"
#include "session/channel.h"
#include "wire/columns.h"
#include "batch/driver.h"
#include "batch/rows.h"
#include "executor/executor.h"
#include "session/pins.h"
#include "miscadmin.h"
#include "node/promote/promote.h"
#include "tableam/slots.h"
#include "utils/rel.h"

#define BATCH_ROWS_MAX 1024

typedef struct CfdPromoteState
{
	CustomScanState css;
	CfdDriver	driver;			/* reads the child's rows */
	Relation	relation;
	List	   *numbers;		/* attribute numbers, by column of the rows */
	CfdRows		batch;
	bool		alone;			/* rows pass singly and are promoted when written */
	bool		holding;		/* garbage collection waits for rows not written yet */
	uint64		batches;
	uint64		promoted;		/* rows in these batches */
} CfdPromoteState;

static const CfdDriverMethods cfd_promote_driver;

static inline CfdPromoteState *
cfd_promote_of(CfdDriver *driver)
{
	return (CfdPromoteState *) ((char *) driver - offsetof(CfdPromoteState, driver));
}

static void
cfd_promote_begin(CustomScanState *node, EState *estate, int flags)
{
	CfdPromoteState *state = (CfdPromoteState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	const List *relation = list_nth(plan->custom_private, CFD_PROMOTE_RELATION);

	state->numbers = list_nth(plan->custom_private, CFD_PROMOTE_NUMBERS);
	state->relation = CFD_TABLE_OF(estate, linitial_int(relation));
	outerPlanState(state) = ExecInitNode(outerPlan(plan), estate, flags);
	cfd_rows_init(&state->batch, node, Min(cfd_batch_rows, BATCH_ROWS_MAX));
	for (int i = 0; i < 2; i++)
		cfd_buffer_init(&state->driver.buffers[i], 0, NULL, 0);
	state->driver.methods = &cfd_promote_driver;
	state->driver.node = &node->ss.ps;
	state->driver.child = outerPlanState(state);
	state->driver.first_rows = state->batch.room;
	cfd_driver_begin(&state->driver);
}

/* Lets garbage collection proceed: the batch has been written, or never will be. */
static void
cfd_promote_release(CfdPromoteState *state)
{
	if (state->holding)
		cfd_release_writer();
	state->holding = false;
}

/* ---------- a batch ---------- */

/* Copies a row into the batch. */
static bool
cfd_promote_add(CfdDriver *driver, CfdBuffer *buffer, TupleTableSlot *row)
{
	CfdPromoteState *state = cfd_promote_of(driver);

	CHECK_FOR_INTERRUPTS();
	return cfd_rows_add(&state->batch, buffer->rows++, row);
}

/* Promotes the batch. A single row is left to the table access method. */
static void
cfd_promote_ask(CfdDriver *driver, CfdBuffer *buffer)
{
	CfdPromoteState *state = cfd_promote_of(driver);

	if (state->alone || buffer->rows < 2)
		return;
	cfd_hold_writer();
	state->holding = true;
	cfd_promote_slots(state->relation, state->numbers, state->batch.slots, buffer->rows);
	state->batches++;
	state->promoted += buffer->rows;
}

static void
cfd_promote_take(CfdDriver *driver, CfdBuffer *buffer)
{
	(void) driver;
	buffer->decided = buffer->good = buffer->rows;
	buffer->next = 0;
}

static const CfdDriverMethods cfd_promote_driver = {
	.ask = cfd_promote_ask,
	.take = cfd_promote_take,
	.add = cfd_promote_add,
};

/* ---------- execution ---------- */

/*
 * Prepares for the next batch: the previous one has been written. Sets the
 * size of the batch.
 */
static void
cfd_promote_prepare(CfdPromoteState *state)
{
	cfd_promote_release(state);
	/*
	 * Without a client, the access method checks the origin of every FID that
	 * is written, so it must do the promotion.
	 */
	state->alone = !cfd_channel.had_client || state->css.ss.ps.state->es_epq_active != NULL || cfd_writer_held();
	state->driver.batch_rows = state->alone ? 1 : state->batch.room;
}

static TupleTableSlot *
cfd_promote_next_row(CustomScanState *node)
{
	CfdPromoteState *state = (CfdPromoteState *) node;
	CfdBuffer  *buffer = &state->driver.buffers[state->driver.current];

	if (buffer->next == buffer->good)
		cfd_promote_prepare(state);
	buffer = cfd_driver_next(&state->driver);
	return buffer == NULL ? NULL : state->batch.slots[buffer->next++];
}

static void
cfd_promote_rescan(CustomScanState *node)
{
	CfdPromoteState *state = (CfdPromoteState *) node;

	cfd_promote_release(state);
	cfd_driver_restart(&state->driver, false);
	if (outerPlanState(state)->chgParam == NULL)
		ExecReScan(outerPlanState(state));
}

static void
cfd_promote_end(CustomScanState *node)
{
	CfdPromoteState *state = (CfdPromoteState *) node;

	cfd_promote_release(state);
	cfd_rows_end(&state->batch);
	ExecEndNode(outerPlanState(state));
}

static void
cfd_promote_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	CfdPromoteState *state = (CfdPromoteState *) node;

	if (!es->analyze)
		return;
	ExplainPropertyInteger("Rows Promoted", NULL, state->promoted, es);
	ExplainPropertyInteger("Batches", NULL, state->batches, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "ConfidePromote",
	.BeginCustomScan = cfd_promote_begin,
	.ExecCustomScan = cfd_promote_next_row,
	.EndCustomScan = cfd_promote_end,
	.ReScanCustomScan = cfd_promote_rescan,
	.ExplainCustomScan = cfd_promote_explain,
};

static Node *
cfd_promote_create_state(CustomScan *plan)
{
	CfdPromoteState *state = palloc0(sizeof(CfdPromoteState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	(void) plan;
	return (Node *) state;
}

const CustomScanMethods cfd_promote_methods = {
	.CustomName = "ConfidePromote",
	.CreateCustomScanState = cfd_promote_create_state,
};
