/*
 * partial.c
 *	  Aggregation in parallel workers.
 *
 * A worker's node aggregates its rows in the keeper and hands the groups over
 * to the session; PostgreSQL gets one row with their number. The leader's node
 * has the keeper merge the groups with these numbers. Rows that do not fit
 * into a worker's aggregation are returned by the keeper, sent to the leader,
 * and aggregated there, in several passes if necessary.
 *
 * Invariants: as in state.h; the keeper has processed everything that a worker
 * sent before the worker's row leaves it.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "session/channel.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "node/aggregate/state.h"

/* Columns of the rows between workers and leader: a number, or returned rows. */
enum
{
	NUMBER,
	ROWS
};

/* ---------- worker ---------- */

/* Stores rows that did not fit, for the leader. */
void
cfd_partial_store(AggregateState *state, const char *answer, uint32 length)
{
	TupleDesc	desc = state->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	bytea	   *rows = palloc(length + VARHDRSZ);
	Datum		values[] = {0, PointerGetDatum(rows)};
	bool		nulls[] = {true, false};

	SET_VARSIZE(rows, length + VARHDRSZ);
	memcpy(VARDATA(rows), answer, length);
	if (state->stored_slot == NULL)
		state->stored_slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	if (state->left == NULL)
		state->left = tuplestore_begin_heap(false, false, work_mem);
	tuplestore_putvalues(state->left, desc, values, nulls);
	pfree(rows);
}

/*
 * Hands the groups over and returns their number. The answer implies that
 * everything sent before has been processed.
 */
static uint64
cfd_partial_hand_over(AggregateState *state)
{
	CfdWireAggregateHandOver body = {.handle = state->handle};
	CfdReadAggregateHandOverAnswer read;
	uint32		length;
	const char *answer = cfd_aggregate_call(state, CFD_KIND_AGGREGATE_HAND_OVER, &body, sizeof(body), &length);

	CFD_DECODE(aggregate_hand_over_answer, answer, length, &read);
	state->generation = 0;		/* the handle is no longer valid */
	return read.head.number;
}

TupleTableSlot *
cfd_partial_next(ScanState *node)
{
	AggregateState *state = (AggregateState *) node;
	TupleTableSlot *slot = node->ss_ScanTupleSlot;

	ExecClearTuple(slot);
	if (!state->filled)
	{
		cfd_aggregate_fill(state);
		cfd_aggregate_take_back(state);
		slot->tts_values[NUMBER] = UInt64GetDatum(cfd_partial_hand_over(state));
		slot->tts_isnull[NUMBER] = false;
		slot->tts_isnull[ROWS] = true;
		return ExecStoreVirtualTuple(slot);
	}
	if (state->left == NULL || !tuplestore_gettupleslot(state->left, true, false, state->stored_slot))
		return slot;
	return ExecCopySlot(slot, state->stored_slot);
}

/* ---------- leader ---------- */

static void
merge(AggregateState *state, uint64 number)
{
	CfdWireAggregateMerge body = {.handle = state->handle,.number = number};

	cfd_send_rows(CFD_KIND_AGGREGATE_MERGE, &body, sizeof(body), NULL, 0, CFD_BATCH_ROWS_MAX);
	cfd_after_batch();
	state->total_merged++;
}

static void
store_rows(AggregateState *state, Datum value)
{
	bytea	   *rows = DatumGetByteaPP(value);
	CfdReadAggregateReturnAnswer read;

	CFD_DECODE(aggregate_return_answer, VARDATA_ANY(rows), VARSIZE_ANY_EXHDR(rows), &read);
	cfd_aggregate_store(state, &read);
	if ((Pointer) rows != DatumGetPointer(value))
		pfree(rows);
}

/*
 * Merges the groups of all workers. Their returned rows become the input of
 * this pass.
 */
void
cfd_partial_merge_all(AggregateState *state)
{
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	PlanState  *child = linitial(state->css.custom_ps);

	for (TupleTableSlot *slot = ExecProcNode(child); !TupIsNull(slot); slot = ExecProcNode(child))
	{
		cfd_aggregate_check(state);
		slot_getallattrs(slot);
		if (!slot->tts_isnull[NUMBER])
			merge(state, DatumGetUInt64(slot->tts_values[NUMBER]));
		else if (!slot->tts_isnull[ROWS])
			store_rows(state, slot->tts_values[ROWS]);
		CHECK_FOR_INTERRUPTS();
	}
	state->input = state->left;
	state->left = NULL;
	MemoryContextSwitchTo(old);
}
