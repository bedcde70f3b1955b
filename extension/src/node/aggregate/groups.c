/*
 * groups.c
 *	  The groups of an aggregation, fetched from the keeper some at a time.
 *
 * Invariants: as in state.h.
 */
#include "postgres.h"

#include "session/channel.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "node/aggregate/state.h"
#include "utils/memutils.h"

static uint64
output_bytes(const AggregateState *state, uint64 groups)
{
	uint64		bytes = 0;

	for (int i = 0; i < state->output_count; i++)
		bytes += groups * (state->outputs[i].raw ? 9 : 8);
	return bytes;
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
		fid = fid_of(value, isnull);
		appendBinaryStringInfo(body, (const char *) &fid, sizeof(fid));
	}
}

static void
cfd_groups_fetch(AggregateState *state)
{
	unsigned char fixed[CFD_FIXED_AGGREGATE_FETCH];
	const char *answer;
	uint32		length;
	uint32		groups;

	resetStringInfo(&state->body);
	enlargeStringInfo(&state->body, sizeof(fixed));
	state->body.len = sizeof(fixed);
	put_having_constants(state, &state->body);
	cfd_begin();
	cfd_put32(fixed, state->handle);
	cfd_put32(fixed + 4, FETCH_GROUPS);
	cfd_put64(fixed + 8, cfd_channel.next[CFD_STATEMENT]);
	cfd_channel.next[CFD_STATEMENT] += (uint64) FETCH_GROUPS * state->stored;
	memcpy(state->body.data, fixed, sizeof(fixed));
	answer = cfd_aggregate_call(state, CFD_KIND_AGGREGATE_FETCH, state->body.data, state->body.len, &length);
	if (length < 16)
		cfd_violation("groups are too short");
	groups = cfd_get32(answer);
	state->flags = cfd_get32(answer + 4);
	if (groups > FETCH_GROUPS || length != 16 + output_bytes(state, groups))
		cfd_violation("groups have the wrong length");
	/* Unused slots are given to the next values. */
	cfd_channel.next[CFD_STATEMENT] -= (uint64) (FETCH_GROUPS - groups) * state->stored;
	if (state->groups == NULL)
		state->groups = MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt,
										   output_bytes(state, FETCH_GROUPS) + 1);
	memcpy(state->groups, answer + 16, length - 16);
	state->group_count = groups;
	state->group = 0;
	state->total_groups += groups;
}

/* The next pass, over the rows and merged groups that found no room; false if there are none. */
static bool
next_pass(AggregateState *state)
{
	bool		unmerged = (state->flags & FLAG_UNMERGED) != 0;

	if (!(state->flags & FLAG_RETURNED) && state->left == NULL && !unmerged)
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
	const char *at = state->groups;
	int			group = state->group++;

	ExecClearTuple(slot);
	for (int i = 0; i < state->output_count; i++)
	{
		const Output *output = &state->outputs[i];
		uint64		value = cfd_get64(at + group * 8);

		at += state->group_count * 8;
		slot->tts_values[i] = UInt64GetDatum(value);
		if (output->raw)
		{
			slot->tts_isnull[i] = at[group] != 0;
			at += state->group_count;
		}
		else
			slot->tts_isnull[i] = !output->count && value == 0;
	}
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
		if (state->flags & FLAG_MORE)
			cfd_groups_fetch(state);
		else if (!next_pass(state))
			state->done = true;
	}
	return ExecClearTuple(node->ss_ScanTupleSlot);
}
