/*
 * groups.c
 *	  Fetches the groups of an aggregation from the keeper, some at a time.
 *
 * Invariants: as in state.h.
 */
#include "postgres.h"

#include "session/channel.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "node/aggregate/state.h"
#include "utils/memutils.h"

/* Keeps groups, whose columns are in a copy of the answer. */
static void
keep_groups(AggregateState *state, const CfdReadAggregateFetchAnswer *read)
{
	CfdReader	from = read->columns;
	Size		length = from.end - from.at;

	if (state->groups != NULL)
		pfree(state->groups);
	state->groups = NULL;
	state->groups = MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt, length + 1);
	memcpy(state->groups, from.at, length);
	from = cfd_reader(state->groups, length);
	for (int i = 0; i < state->output_count; i++)
	{
		Output	   *output = &state->outputs[i];
		CfdReadColumn column;

		if (!cfd_read_column(&from, read->head.groups, &column) ||
			column.head.form != (output->raw ? CFD_COLUMN_RAW : CFD_COLUMN_LIST))
			cfd_violation("groups have other columns");
		output->values = column.values;
		output->nulls = column.nulls;
	}
	if (from.at != from.end)
		cfd_violation("groups have too many columns");
}

static void
put_having_constants(AggregateState *state, StringInfo body)
{
	if (state->having == NULL)
		return;
	for (int i = 0; i < state->having_compiler->count; i++)
	{
		CfdInput   *input = &state->having_compiler->inputs[i];
		ExprState  *expr;
		Datum		value;
		bool		isnull;
		CfdFid		fid;

		if (!input->constant)
			continue;
		expr = ExecInitExpr(input->expr, &state->css.ss.ps);
		value = ExecEvalExprSwitchContext(expr, state->css.ss.ps.ps_ExprContext, &isnull);
		if (!isnull && input->cell)
			fid = cfd_cell_open(NULL, PG_DETOAST_DATUM_PACKED(value), input->type);
		else
			fid = fid_of(value, isnull);
		appendBinaryStringInfo(body, (const char *) &fid, sizeof(fid));
	}
}

/* Has the keeper store the results of the only group, of which it tells nothing. */
static void
store_untold(AggregateState *state)
{
	CfdWireAggregateStore body = {.handle = state->handle};

	cfd_begin();
	cfd_aggregate_check(state);
	body.first = cfd_new_slots(CFD_STATEMENT, state->stored);
	cfd_send(CFD_KIND_AGGREGATE_STORE, &body, sizeof(body), NULL, 0);
	cfd_after_operation();
	for (int i = 0; i < state->output_count; i++)
	{
		state->outputs[i].untold = body.first + i;
		state->outputs[i].values = &state->outputs[i].untold;
	}
	state->flags = 0;
	state->group_count = 1;
	state->group = 0;
	state->total_groups++;
}

static void
cfd_groups_fetch(AggregateState *state)
{
	CfdWireAggregateFetch fixed = {.handle = state->handle,.max = FETCH_GROUPS};
	CfdReadAggregateFetchAnswer read;
	const char *answer;
	uint32		length;
	uint32		groups;

	resetStringInfo(&state->body);
	appendBinaryStringInfo(&state->body, (const char *) &fixed, sizeof(fixed));
	put_having_constants(state, &state->body);
	cfd_begin();
	fixed.first = cfd_channel.next[CFD_STATEMENT];
	cfd_channel.next[CFD_STATEMENT] += (uint64) FETCH_GROUPS * state->stored;
	memcpy(state->body.data, &fixed, sizeof(fixed));
	answer = cfd_aggregate_call(state, CFD_KIND_AGGREGATE_FETCH, state->body.data, state->body.len, &length);
	CFD_DECODE(aggregate_fetch_answer, answer, length, &read);
	groups = read.head.groups;
	state->flags = read.head.flags;
	if (groups > FETCH_GROUPS)
		cfd_violation("more groups than were asked for");
	/* Return the unused slot numbers. */
	cfd_channel.next[CFD_STATEMENT] -= (uint64) (FETCH_GROUPS - groups) * state->stored;
	keep_groups(state, &read);
	state->group_count = groups;
	state->group = 0;
	state->total_groups += groups;
}

/*
 * Starts the next pass over the rows and groups that did not fit. Returns
 * false if there are none.
 */
static bool
next_pass(AggregateState *state)
{
	bool		unmerged = (state->flags & CFD_AGGREGATION_UNMERGED) != 0;

	if (!(state->flags & CFD_AGGREGATION_RETURNED) && state->left == NULL && !unmerged)
		return false;
	cfd_aggregate_take_back(state);
	state->input = state->left;
	state->left = NULL;
	if (state->input == NULL && !unmerged)
		return false;
	cfd_aggregate_fill(state);
	return true;
}

static TupleTableSlot *
put_group(AggregateState *state, TupleTableSlot *slot)
{
	int			group = state->group++;
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.ps_ExprContext->ecxt_per_tuple_memory);

	ExecClearTuple(slot);
	for (int i = 0; i < state->output_count; i++)
	{
		const Output *output = &state->outputs[i];
		uint64		value = output->values[group];

		slot->tts_values[i] = UInt64GetDatum(value);
		if (output->raw)
			slot->tts_isnull[i] = output->nulls[group] != 0;
		else
			slot->tts_isnull[i] = !output->count && value == 0;
		if (output->cell && !slot->tts_isnull[i])
			slot->tts_values[i] = PointerGetDatum(cfd_cell_loose(value));
	}
	MemoryContextSwitchTo(old);
	return ExecStoreVirtualTuple(slot);
}

TupleTableSlot *
cfd_aggregate_next(ScanState *node)
{
	AggregateState *state = (AggregateState *) node;

	if (!state->filled)
		cfd_aggregate_fill(state);
	while (!state->done)
	{
		if (state->group < state->group_count)
			return put_group(state, node->ss_ScanTupleSlot);
		CHECK_FOR_INTERRUPTS();
		if ((state->flags & CFD_AGGREGATION_MORE) && state->kept)
			store_untold(state);
		else if (state->flags & CFD_AGGREGATION_MORE)
			cfd_groups_fetch(state);
		else if (!next_pass(state))
			state->done = true;
	}
	return ExecClearTuple(node->ss_ScanTupleSlot);
}
