/*
 * node.c
 *	  Promotion by the batch, executed: see promote.h.
 *
 * Rows of a batch are copied, promoted, and given one by one. A batch is written when the
 * next row after it is asked for, or when the plan ends. In a check of a row that another
 * transaction has changed (EvalPlanQual), and below a statement that holds a batch already (its
 * trigger runs this one), rows are passed on one by one and not promoted.
 *
 * Invariants: as in promote.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "session/channel.h"
#include "wire/columns.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "session/pins.h"
#include "miscadmin.h"
#include "node/promote/promote.h"
#include "tableam/slots.h"
#include "utils/rel.h"

#define BATCH_ROWS_MAX 1024
#define BATCH_BYTES_MAX (512 * 1024)

typedef struct CfdPromoteState
{
	CustomScanState css;
	Relation	relation;
	List	   *numbers;		/* of attributes, by column of the rows */
	TupleTableSlot **slots;		/* rows of a batch; made when they are needed */
	int			room;
	int			made;
	int			count;
	int			next;
	bool		ended;			/* the plan below has no more rows */
	bool		holding;		/* garbage collection back, for what is not yet written */
	uint64		batches;
	uint64		promoted;		/* rows in them */
} CfdPromoteState;

static void
cfd_promote_begin(CustomScanState *node, EState *estate, int flags)
{
	CfdPromoteState *state = (CfdPromoteState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	const List *relation = list_nth(plan->custom_private, CFD_PROMOTE_RELATION);

	state->numbers = list_nth(plan->custom_private, CFD_PROMOTE_NUMBERS);
	state->relation = ExecGetRangeTableRelation(estate, linitial_int(relation));
	outerPlanState(state) = ExecInitNode(outerPlan(plan), estate, flags);
	state->room = Min(cfd_batch_rows, BATCH_ROWS_MAX);
	state->slots = palloc0(state->room * sizeof(TupleTableSlot *));
}

/* Copies a row into the batch; its size. */
static Size
cfd_promote_keep(CfdPromoteState *state, TupleTableSlot *row)
{
	TupleDesc	desc = state->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	TupleTableSlot *slot;

	if (state->count == state->made)
	{
		MemoryContext before = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);

		state->slots[state->made++] = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
		MemoryContextSwitchTo(before);
	}
	slot = state->slots[state->count++];
	ExecCopySlot(slot, row);
	return heap_compute_data_size(desc, slot->tts_values, slot->tts_isnull);
}

/* The batch is written, or never will be. */
static void
cfd_promote_release(CfdPromoteState *state)
{
	if (state->holding)
		cfd_release_writer();
	state->holding = false;
}

/* Takes rows of the next batch; whether there are any. */
static bool
cfd_promote_take_rows(CfdPromoteState *state, int limit)
{
	Size		bytes = 0;

	state->count = state->next = 0;
	while (!state->ended && state->count < limit && bytes < BATCH_BYTES_MAX)
	{
		TupleTableSlot *row = ExecProcNode(outerPlanState(state));

		CHECK_FOR_INTERRUPTS();
		if (TupIsNull(row))
			state->ended = true;
		else
			bytes += cfd_promote_keep(state, row);
	}
	return state->count > 0;
}

static TupleTableSlot *
cfd_promote_next_row(CustomScanState *node)
{
	CfdPromoteState *state = (CfdPromoteState *) node;

	if (state->next == state->count)
	{
		bool		alone;

		cfd_promote_release(state);
		/* Without a client the access method looks whose identifiers are written: it must see them. */
		alone = !cfd_channel.had_client || node->ss.ps.state->es_epq_active != NULL || cfd_writer_held();
		if (!cfd_promote_take_rows(state, alone ? 1 : state->room))
			return NULL;
		/* What one row has the access method promotes when it is written. */
		if (!alone && state->count > 1)
		{
			cfd_hold_writer();
			state->holding = true;
			cfd_promote_slots(state->relation, state->numbers, state->slots, state->count);
			state->batches++;
			state->promoted += state->count;
		}
	}
	return state->slots[state->next++];
}

static void
cfd_promote_rescan(CustomScanState *node)
{
	CfdPromoteState *state = (CfdPromoteState *) node;

	cfd_promote_release(state);
	state->count = state->next = 0;
	state->ended = false;
	if (outerPlanState(state)->chgParam == NULL)
		ExecReScan(outerPlanState(state));
}

static void
cfd_promote_end(CustomScanState *node)
{
	CfdPromoteState *state = (CfdPromoteState *) node;

	cfd_promote_release(state);
	for (int i = 0; i < state->made; i++)
		ExecDropSingleTupleTableSlot(state->slots[i]);
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
