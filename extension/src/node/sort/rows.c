/*
 * rows.c
 *	  Rows on their way into a sort: their keys to the keeper, they themselves into memory
 *	  or a store.
 *
 * Under a LIMIT the keeper is asked for the first so many of what is there, again and again, and
 * the other rows are dropped, as PostgreSQL's bounded sort does.
 *
 * Invariants: as in state.h.
 */
#include "postgres.h"

#include "order/plain.h"
#include "order/ranks.h"
#include "node/sort/state.h"
#include "session/channel.h"
#include "executor/executor.h"
#include "value/types.h"

/* ---------- keys ---------- */

static void
cfd_sort_send_words(CfdSortState *state)
{
	if (state->word_rows > 0)
		cfd_set_add(&state->set, state->words, state->word_rows, state->word_room);
	state->word_rows = 0;
}

/* Takes the keys of a row. */
static void
take_keys(CfdSortState *state, TupleTableSlot *slot)
{
	uint64	   *word = state->words + state->word_rows;
	Size		stride = state->word_room;

	for (int i = 0; i < state->key_count; i++)
	{
		const Key  *key = &state->keys[i];
		bool		null;
		Datum		value = slot_getattr(slot, key->column, &null);

		if (key->number)
		{
			*word = null;
			word += stride;
			*word = null ? 0 : cfd_plain_number(value, key->plain);
		}
		else if (key->ranks != NULL)
			*word = key->ranks[state->row];
		else
		{
			if (unlikely(!null && DatumGetUInt64(value) == 0))
				cfd_invalid_fid();
			*word = null ? 0 : DatumGetUInt64(value);
		}
		word += stride;
	}
	state->row++;
	state->word_rows++;
}

/* ---------- plain keys that are no numbers ---------- */

void
cfd_sort_begin_plain_sorts(CfdSortState *state)
{
	TupleDesc	desc = state->kept->tts_tupleDescriptor;

	for (int i = 0; i < state->key_count; i++)
	{
		Key		   *key = &state->keys[i];

		if (OidIsValid(key->plain) && !key->number)
			key->sort = cfd_plain_sort_create(TupleDescAttr(desc, key->column - 1)->atttypid, key->operator,
											  key->collation, key->nulls_first);
	}
}

void
cfd_sort_end_plain_sorts(CfdSortState *state)
{
	for (int i = 0; i < state->key_count; i++)
	{
		if (state->keys[i].sort != NULL)
			cfd_plain_sort_end(state->keys[i].sort);
		state->keys[i].sort = NULL;
	}
}

static void
cfd_sort_look_at(CfdSortState *state, TupleTableSlot *slot)
{
	for (int i = 0; i < state->key_count; i++)
	{
		const Key  *key = &state->keys[i];
		bool		null;
		Datum		value;

		if (key->sort == NULL)
			continue;
		value = slot_getattr(slot, key->column, &null);
		cfd_plain_sort_add(key->sort, value, null);
	}
}

/* ---------- rows ---------- */

static void
cfd_sort_make_room(CfdSortState *state)
{
	state->room = Max(state->room * 2, 1024);
	if (state->rows == NULL)
		state->rows = palloc(sizeof(MinimalTuple) * state->room);
	else
		state->rows = repalloc_huge(state->rows, sizeof(MinimalTuple) * state->room);
}

static void
keep_row(CfdSortState *state, TupleTableSlot *slot)
{
	if (state->count == state->room)
		cfd_sort_make_room(state);
	state->rows[state->count] = ExecCopySlotMinimalTuple(slot);
	state->used += GetMemoryChunkSpace(state->rows[state->count]) + sizeof(MinimalTuple) + sizeof(uint32);
	state->count++;
}

static void
cfd_sort_spill(CfdSortState *state)
{
	state->store = tuplestore_begin_heap(false, false, work_mem);
	if (state->waits)
		tuplestore_set_eflags(state->store, EXEC_FLAG_REWIND);
	for (uint32 i = 0; i < state->count; i++)
	{
		ExecStoreMinimalTuple(state->rows[i], state->kept, false);
		tuplestore_puttupleslot(state->store, state->kept);
		pfree(state->rows[i]);
	}
	ExecClearTuple(state->kept);
	pfree(state->rows);
	state->rows = NULL;
	state->room = 0;
}

const uint32 *
cfd_sort_ask(CfdSortState *state, uint32 limit)
{
	cfd_sort_send_words(state);
	state->ranked += state->set.rows;
	state->exchanges++;
	return cfd_set_rank(&state->set, 0, limit, true);
}

/* Places of the rows in memory, from their ranks. */
static void
place_rows(CfdSortState *state, const uint32 *ranks)
{
	uint32		count = state->count;
	uint32	   *starts = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint32) * ((Size) count + 1));
	uint32		sum = 0;

	memset(starts, 0, sizeof(uint32) * ((Size) count + 1));
	state->order = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint32) * Max(count, 1));
	for (uint32 i = 0; i < count; i++)
	{
		if (unlikely(ranks[i] >= count))
			cfd_violation("impossible rank");
		starts[ranks[i]]++;
	}
	for (uint32 i = 0; i < count; i++)
	{
		uint32		rows = starts[i];

		starts[i] = sum;
		sum += rows;
	}
	for (uint32 i = 0; i < count; i++)
		state->order[starts[ranks[i]]++] = i;
	pfree(starts);
	if (state->comparison == 0)
		return;
	state->same = MemoryContextAllocHuge(CurrentMemoryContext, Max(count, 1));
	for (uint32 i = 0; i < count; i++)
		state->same[i] = i > 0 && ranks[state->order[i]] == ranks[state->order[i - 1]];
}

/* Nodes below keep what they allocate at their first call: not with our rows. */
static TupleTableSlot *
next_input(CfdSortState *state)
{
	MemoryContext own = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	TupleTableSlot *slot = ExecProcNode(outerPlanState(state));

	MemoryContextSwitchTo(own);
	return TupIsNull(slot) ? NULL : slot;
}

/*
 * Of the rows in memory only the first `bound` stay. Gives their ranks, which the
 * caller frees.
 */
static uint32 *
drop_rows(CfdSortState *state)
{
	uint32		limit = state->count > state->bound ? (uint32) state->bound : 0;
	const uint32 *answer = cfd_sort_ask(state, limit);
	uint32	   *ranks = palloc(sizeof(uint32) * state->count);
	uint32		kept = 0;

	for (uint32 i = 0; i < state->count; i++)
	{
		if (answer[i] == CFD_RANK_BEYOND)
			pfree(state->rows[i]);
		else
		{
			ranks[kept] = answer[i];
			state->rows[kept++] = state->rows[i];
		}
	}
	state->count = kept;
	return ranks;
}

void
cfd_sort_take_rows_bounded(CfdSortState *state)
{
	uint32		limit = (uint32) state->bound + BOUND_ROWS;
	TupleTableSlot *slot;

	while ((slot = next_input(state)) != NULL)
	{
		if (state->count == limit)
		{
			pfree(drop_rows(state));
			/* Their keys are sent again with the next rows. */
			for (uint32 i = 0; i < state->count; i++)
			{
				ExecStoreMinimalTuple(state->rows[i], state->kept, false);
				take_keys(state, state->kept);
			}
			ExecClearTuple(state->kept);
		}
		take_keys(state, slot);
		keep_row(state, slot);
	}
	if (state->count > 1)
	{
		uint32	   *ranks = drop_rows(state);

		place_rows(state, ranks);
		pfree(ranks);
	}
}

/* The order will be found by comparisons, as without this node. */
static void
give_up_ranks(CfdSortState *state)
{
	state->compares = true;
	state->word_rows = 0;
	cfd_sort_end_plain_sorts(state);
	cfd_set_reset(&state->set);
	if (state->store == NULL)
		cfd_sort_spill(state);
}

/* Takes the keys of a row, or what must be known before. */
static void
take_row(CfdSortState *state, TupleTableSlot *slot)
{
	if (unlikely(state->taken >= (uint32) cfd_bulk_sort_rows))
	{
		give_up_ranks(state);
		return;
	}
	state->taken++;
	if (state->waits)
		cfd_sort_look_at(state, slot);
	else
		take_keys(state, slot);
	if (state->word_rows == state->word_room)
		cfd_sort_send_words(state);
}

/* Ranks of plain keys are known when all rows are there: then these are gone through again. */
static void
take_waiting_keys(CfdSortState *state)
{
	for (int i = 0; i < state->key_count; i++)
	{
		Key		   *key = &state->keys[i];

		if (key->sort != NULL)
			key->ranks = cfd_plain_sort_ranks(key->sort);
	}
	cfd_sort_end_plain_sorts(state);
	if (state->store != NULL)
		tuplestore_rescan(state->store);
	for (uint32 i = 0; i < state->taken; i++)
	{
		if (state->store == NULL)
			ExecStoreMinimalTuple(state->rows[i], state->kept, false);
		else if (!tuplestore_gettupleslot(state->store, true, false, state->kept))
			break;
		take_keys(state, state->kept);
		if (state->word_rows == state->word_room)
			cfd_sort_send_words(state);
		CHECK_FOR_INTERRUPTS();
	}
	ExecClearTuple(state->kept);
	if (state->store != NULL)
		tuplestore_rescan(state->store);
}

void
cfd_sort_take_rows(CfdSortState *state)
{
	Size		allowed = work_mem * (Size) 1024;
	TupleTableSlot *slot;

	while ((slot = next_input(state)) != NULL)
	{
		if (!state->compares)
			take_row(state, slot);
		if (state->store != NULL)
			tuplestore_puttupleslot(state->store, slot);
		else
		{
			keep_row(state, slot);
			if (state->used > allowed)
				cfd_sort_spill(state);
		}
	}
	if (state->waits && !state->compares)
		take_waiting_keys(state);
	if (state->store == NULL && state->count > 1)
		place_rows(state, cfd_sort_ask(state, 0));
}
