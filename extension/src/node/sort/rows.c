/*
 * rows.c
 *	  Reads the rows of a sort: sends their keys to the keeper, and keeps
 *	  the rows in memory or in a tuplestore.
 *
 * The batch driver (batch/driver.h) reads the rows, and the keys of each batch
 * are sent one-way. Ranks of plain keys that are not numbers are known only
 * when all rows have arrived; the rows are then read a second time. Under a
 * LIMIT the keeper is repeatedly asked for the first rows among those present,
 * and the other rows are dropped, as in PostgreSQL's bounded sort.
 *
 * Invariants: as in state.h.
 */
#include "postgres.h"

#include "cell/cell.h"
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

static CfdFid
open_key(const Key *key, Datum value)
{
	struct varlena *cell = PG_DETOAST_DATUM_PACKED(value);
	CfdFid		fid = cfd_cell_open(NULL, cell, key->cell);

	if ((Pointer) cell != DatumGetPointer(value))
		pfree(cell);
	return fid;
}

/* Stores the keys of a row for sending. */
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
		else if (key->cell != 0)
			*word = null ? 0 : open_key(key, value);
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

/* ---------- plain keys that are not numbers ---------- */

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
	state->round_trips++;
	return cfd_set_rank(&state->set, 0, limit, true);
}

/* Computes the positions of the rows in memory from their ranks. */
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

/*
 * Drops all rows in memory but the first `bound`. Returns the ranks of the
 * remaining ones, which the caller frees.
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

/* From here on, the order is determined by comparisons, as without this node. */
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

/* ---------- a batch ---------- */

/* The next stored row; NULL at the end. */
static TupleTableSlot *
next_there(CfdSortState *state)
{
	if (state->row >= state->taken)
		return NULL;
	if (state->store == NULL)
		return ExecStoreMinimalTuple(state->rows[state->row], state->kept, false);
	return tuplestore_gettupleslot(state->store, true, false, state->kept) ? state->kept : NULL;
}

static TupleTableSlot *
cfd_sort_next_input(CfdDriver *driver)
{
	CfdSortState *state = cfd_sort_of(driver);
	TupleTableSlot *slot;
	MemoryContext own;

	if (state->again)
		return next_there(state);
	/*
	 * Child nodes may allocate memory at their first call that must not be
	 * freed with our rows.
	 */
	own = MemoryContextSwitchTo(driver->node->state->es_query_cxt);
	slot = ExecProcNode(driver->child);
	MemoryContextSwitchTo(own);
	return slot;
}

/* With a limit: drops rows if there is no room, then keeps the row. */
static void
add_bounded(CfdSortState *state, TupleTableSlot *slot)
{
	if (state->count == (uint32) state->bound + BOUND_ROWS)
	{
		pfree(drop_rows(state));
		/* Send the keys of the remaining rows again, together with the next rows. */
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

/* Sends the keys of a row, or collects what must be known before. */
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
}

/* Keeps a row in memory, or in the tuplestore if memory is full. */
static void
add_unbounded(CfdSortState *state, TupleTableSlot *slot)
{
	if (!state->compares)
		take_row(state, slot);
	if (state->store != NULL)
		tuplestore_puttupleslot(state->store, slot);
	else
	{
		keep_row(state, slot);
		if (state->used > work_mem * (Size) 1024)
			cfd_sort_spill(state);
	}
}

static bool
cfd_sort_add(CfdDriver *driver, CfdBuffer *buffer, TupleTableSlot *slot)
{
	CfdSortState *state = cfd_sort_of(driver);

	buffer->rows++;
	if (state->again)
		take_keys(state, slot);
	else if (state->bound > 0)
		add_bounded(state, slot);
	else
		add_unbounded(state, slot);
	return true;
}

static void
cfd_sort_ask_about(CfdDriver *driver, CfdBuffer *buffer)
{
	(void) buffer;
	cfd_sort_send_words(cfd_sort_of(driver));
}

static void
cfd_sort_take(CfdDriver *driver, CfdBuffer *buffer)
{
	(void) driver;
	cfd_buffer_swallow(buffer);
}

const CfdDriverMethods cfd_sort_driver = {
	.ask = cfd_sort_ask_about,
	.take = cfd_sort_take,
	.next = cfd_sort_next_input,
	.add = cfd_sort_add,
};

/* ---------- all rows ---------- */

/* The ranks of plain keys are known now, so read all rows a second time. */
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
	state->again = true;
	cfd_driver_restart(&state->driver, false);
	cfd_driver_drain(&state->driver);
	ExecClearTuple(state->kept);
	if (state->store != NULL)
		tuplestore_rescan(state->store);
}

void
cfd_sort_take_rows(CfdSortState *state)
{
	state->again = false;
	cfd_driver_restart(&state->driver, false);
	cfd_driver_drain(&state->driver);
	if (state->bound == 0 && state->waits && !state->compares)
		take_waiting_keys(state);
	if (state->bound > 0 && state->count > 1)
	{
		uint32	   *ranks = drop_rows(state);

		place_rows(state, ranks);
		pfree(ranks);
	}
	else if (state->store == NULL && state->count > 1)
		place_rows(state, cfd_sort_ask(state, 0));
}
