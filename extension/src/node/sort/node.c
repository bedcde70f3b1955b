/*
 * node.c
 *	  Executes sorts in bulk: takes all rows, has the keeper rank them by all of
 *	  their keys at once, and gives them in that order.
 *
 * Keys go to the keeper as rows come; plain keys go as numbers. Of plain keys that are none
 * PostgreSQL's sort makes ranks first, and keys go when all rows are there. Under a LIMIT the
 * keeper is asked for the first so many of what is there, again and again, and the
 * other rows are dropped, as PostgreSQL's bounded sort does. What exceeds work_mem
 * goes to a tuplestore, and is sorted by rank with PostgreSQL's own sort. More rows
 * than the keeper ranks at once are left to that sort altogether, which compares.
 *
 * Invariants: the order is that of the Sort this node stands for, but for equal
 * rows; the keeper is told of no row that PostgreSQL would not have sorted.
 */
#include "postgres.h"

#include "known/known.h"
#include "order/plain.h"
#include "order/plain_sort.h"
#include "order/ranks.h"
#include "order/set.h"
#include "node/sort/sort.h"
#include "catalog/pg_operator.h"
#include "session/channel.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "ops/evaluate.h"
#include "parser/parsetree.h"
#include "value/types.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

/* Rows whose keys are sent at a time. */
#define SEND_ROWS 4096
/* The largest LIMIT for which rows are dropped as they come. */
#define BOUND_MAX 32768
/* Rows between two questions for the first ones. */
#define BOUND_ROWS 8192

/* A sort column of the query. */
typedef struct Key
{
	AttrNumber	column;
	Oid			plain;			/* type if not protected */
	bool		number;			/* whose values can be told as numbers */
	CfdPlainSort *sort;			/* of those that cannot */
	const uint32 *ranks;		/* what it has found, by row */
	Oid			operator;
	Oid			collation;
	bool		descending;
	bool		nulls_first;
} Key;

typedef struct CfdSortState
{
	CustomScanState css;
	/* what the plan says */
	int			key_count;
	Key		   *keys;
	List	   *bounds;			/* ExprStates of count and offset */
	bool		random_access;
	bool		waits;			/* for ranks of plain keys */
	/* what has been done */
	bool		done;
	bool		ended;			/* read past the last row */
	bool		mark_ended;
	int64		bound;			/* 0: none */
	MemoryContext context;		/* everything below */
	CfdSet		set;
	uint32		taken;			/* rows whose keys have been looked at */
	uint32		row;			/* rows whose keys are sent, or wait to be */
	uint64	   *words;			/* keys not sent yet, column by column */
	uint32		word_rows;
	uint32		word_room;
	MinimalTuple *rows;			/* in memory */
	uint32		count;
	uint32		room;
	Size		used;
	uint32	   *order;			/* places of rows in the output */
	bool	   *same;			/* whether the row at a place equals the one before; or NULL */
	int64		at;				/* rows given */
	int64		mark;
	Oid			equality;		/* function, if the only key is protected; or 0 */
	int64		told;			/* place of the row that nodes above were told of last */
	CfdFid		last;			/* its key, or 0 */
	CfdFid		first;			/* that of the first row that equals the one before it */
	bool		last_same;		/* it equals the one before */
	Tuplestorestate *store;		/* what did not fit into memory */
	bool		compares;		/* too many rows to be ranked */
	Tuplesortstate *sorter;
	TupleTableSlot *wide;		/* rank and row */
	TupleTableSlot *kept;		/* a row in memory */
	TupleTableSlot *spilled;	/* a row from the sorter */
	/* for EXPLAIN */
	int64		ranked;
	int64		exchanges;
} CfdSortState;

static const CustomExecMethods exec_methods;

/* ---------- start ---------- */

static Node *
cfd_sort_create_state(CustomScan *node)
{
	CfdSortState *state = (CfdSortState *) newNode(sizeof(CfdSortState), T_CustomScanState);

	state->css.flags = node->flags;
	state->css.methods = &exec_methods;
	return (Node *) state;
}

static void
cfd_sort_read_keys(CfdSortState *state, const List *description)
{
	List	   *parts[CFD_SORT_PARTS];
	CfdRankKey *words = state->set.keys;

	for (int i = 0; i < CFD_SORT_PARTS; i++)
		parts[i] = list_nth_node(List, description, i);
	state->key_count = list_length(parts[CFD_SORT_COLUMN]);
	state->keys = palloc0(sizeof(Key) * state->key_count);
	for (int i = 0; i < state->key_count; i++)
	{
		Key		   *key = &state->keys[i];

		key->column = list_nth_int(parts[CFD_SORT_COLUMN], i);
		key->plain = (Oid) list_nth_int(parts[CFD_SORT_PLAIN], i);
		key->number = list_nth_int(parts[CFD_SORT_NUMBER], i);
		key->collation = (Oid) list_nth_int(parts[CFD_SORT_COLLATION], i);
		key->operator = (Oid) list_nth_int(parts[CFD_SORT_OPERATOR], i);
		key->descending = list_nth_int(parts[CFD_SORT_DESCENDING], i);
		key->nulls_first = list_nth_int(parts[CFD_SORT_NULLS_FIRST], i);
		/* A number is two columns: whether it is NULL, and its value. */
		if (key->number)
			words++->descending = key->nulls_first;
		words->type = (uint8) list_nth_int(parts[CFD_SORT_TYPE], i);
		/* Ranks of plain keys are in the order already. */
		words->descending = key->descending && (words->type != 0 || key->number);
		state->waits |= words->type == 0 && !key->number;
		words++->nulls_first = key->nulls_first;
	}
	state->set.columns = words - state->set.keys;
	if (state->key_count == 1 && !OidIsValid(state->keys[0].plain))
		state->equality = get_opcode(get_equality_op_for_ordering_op(state->keys[0].operator, NULL));
}

static void
cfd_sort_begin(CustomScanState *node, EState *estate, int flags)
{
	CfdSortState *state = (CfdSortState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	const int	again = EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK;
	TupleDesc	desc = node->ss.ss_ScanTupleSlot->tts_tupleDescriptor;

	cfd_sort_read_keys(state, plan->custom_private);
	state->random_access = (flags & again) != 0;
	state->bounds = ExecInitExprList(plan->custom_exprs, &node->ss.ps);
	outerPlanState(state) = ExecInitNode(outerPlan(plan), estate, flags & ~again);
	state->kept = ExecInitExtraTupleSlot(estate, desc, &TTSOpsMinimalTuple);
	state->spilled = ExecInitExtraTupleSlot(estate, desc, &TTSOpsVirtual);
	/* Either of the two slots may be the result. */
	node->ss.ps.resultops = &TTSOpsMinimalTuple;
	node->ss.ps.resultopsset = true;
	node->ss.ps.resultopsfixed = false;
	state->context = AllocSetContextCreate(estate->es_query_cxt, "confide sort", ALLOCSET_DEFAULT_SIZES);
}

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

static void
begin_plain_sorts(CfdSortState *state)
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

static void
end_plain_sorts(CfdSortState *state)
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

static const uint32 *
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
	if (!OidIsValid(state->equality))
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

static void
take_rows_bounded(CfdSortState *state)
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
	end_plain_sorts(state);
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
	end_plain_sorts(state);
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

static void
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

/* ---------- rows on disk ---------- */

/* The row type with the rank before it. */
static TupleDesc
wide_desc(TupleDesc desc)
{
	TupleDesc	wide = CreateTemplateTupleDesc(desc->natts + 1);

	TupleDescInitEntry(wide, 1, "rank", INT4OID, -1, 0);
	for (int i = 1; i <= desc->natts; i++)
		TupleDescCopyEntry(wide, i + 1, desc, i);
	return wide;
}

static void
sort_store(CfdSortState *state)
{
	TupleDesc	desc = state->kept->tts_tupleDescriptor;
	AttrNumber	column = 1;
	Oid			operator = Int4LessOperator;
	Oid			collation = InvalidOid;
	bool		nulls_first = false;
	uint32		rows = state->set.rows + state->word_rows;
	uint32	   *ranks = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint32) * (Size) rows);
	TupleTableSlot *wide;

	memcpy(ranks, cfd_sort_ask(state, 0), sizeof(uint32) * (Size) rows);
	state->wide = wide = MakeSingleTupleTableSlot(wide_desc(desc), &TTSOpsMinimalTuple);
	wide = MakeSingleTupleTableSlot(wide->tts_tupleDescriptor, &TTSOpsVirtual);
	state->sorter = tuplesort_begin_heap(wide->tts_tupleDescriptor, 1, &column, &operator, &collation,
										 &nulls_first, work_mem, NULL,
										 state->random_access ? TUPLESORT_RANDOMACCESS : TUPLESORT_NONE);
	for (uint32 i = 0; i < rows && tuplestore_gettupleslot(state->store, true, false, state->kept); i++)
	{
		slot_getallattrs(state->kept);
		ExecClearTuple(wide);
		wide->tts_values[0] = Int32GetDatum((int32) ranks[i]);
		wide->tts_isnull[0] = false;
		memcpy(wide->tts_values + 1, state->kept->tts_values, sizeof(Datum) * desc->natts);
		memcpy(wide->tts_isnull + 1, state->kept->tts_isnull, sizeof(bool) * desc->natts);
		tuplesort_puttupleslot(state->sorter, ExecStoreVirtualTuple(wide));
		CHECK_FOR_INTERRUPTS();
	}
	ExecClearTuple(state->kept);
	ExecDropSingleTupleTableSlot(wide);
	tuplestore_end(state->store);
	state->store = NULL;
	pfree(ranks);
	tuplesort_performsort(state->sorter);
}

/* PostgreSQL's sort of the rows as they are. */
static void
compare_store(CfdSortState *state)
{
	int			keys = state->key_count;
	AttrNumber *columns = palloc(sizeof(AttrNumber) * keys);
	Oid		   *operators = palloc(sizeof(Oid) * keys);
	Oid		   *collations = palloc(sizeof(Oid) * keys);
	bool	   *nulls_first = palloc(sizeof(bool) * keys);

	for (int i = 0; i < keys; i++)
	{
		columns[i] = state->keys[i].column;
		operators[i] = state->keys[i].operator;
		collations[i] = state->keys[i].collation;
		nulls_first[i] = state->keys[i].nulls_first;
	}
	state->sorter = tuplesort_begin_heap(state->kept->tts_tupleDescriptor, keys, columns, operators,
										 collations, nulls_first, work_mem, NULL,
										 state->random_access ? TUPLESORT_RANDOMACCESS : TUPLESORT_NONE);
	while (tuplestore_gettupleslot(state->store, true, false, state->kept))
	{
		tuplesort_puttupleslot(state->sorter, state->kept);
		CHECK_FOR_INTERRUPTS();
	}
	ExecClearTuple(state->kept);
	tuplestore_end(state->store);
	state->store = NULL;
	tuplesort_performsort(state->sorter);
}

static TupleTableSlot *
next_spilled(CfdSortState *state, bool forward)
{
	TupleTableSlot *slot = state->spilled;
	int			natts = slot->tts_tupleDescriptor->natts;

	if (state->compares)
	{
		/* Clears the slot at the end. */
		(void) tuplesort_gettupleslot(state->sorter, forward, false, state->kept, NULL);
		return state->kept;
	}
	ExecClearTuple(slot);
	if (!tuplesort_gettupleslot(state->sorter, forward, false, state->wide, NULL))
		return slot;
	slot_getallattrs(state->wide);
	memcpy(slot->tts_values, state->wide->tts_values + 1, sizeof(Datum) * natts);
	memcpy(slot->tts_isnull, state->wide->tts_isnull + 1, sizeof(bool) * natts);
	return ExecStoreVirtualTuple(slot);
}

/* ---------- the node ---------- */

/* Rows that are wanted at most; 0 for all. */
static int64
find_bound(CfdSortState *state)
{
	ExprContext *context = state->css.ss.ps.ps_ExprContext;
	int64		bound = 0;
	ListCell   *cell;

	foreach(cell, state->bounds)
	{
		bool		null;
		int64		rows = DatumGetInt64(ExecEvalExprSwitchContext(lfirst(cell), context, &null));

		if (null && foreach_current_index(cell) == 0)
			return 0;
		if (!null && rows > 0)
			bound += Min(rows, BOUND_MAX + 1);
	}
	return bound <= BOUND_MAX ? bound : 0;
}

static void
drop_all(CfdSortState *state)
{
	cfd_set_reset(&state->set);
	end_plain_sorts(state);
	for (int i = 0; i < state->key_count; i++)
		state->keys[i].ranks = NULL;
	ExecClearTuple(state->kept);
	ExecClearTuple(state->spilled);
	if (state->store != NULL)
		tuplestore_end(state->store);
	if (state->wide != NULL)
		ExecDropSingleTupleTableSlot(state->wide);
	if (state->sorter != NULL)
		tuplesort_end(state->sorter);
	state->store = NULL;
	state->sorter = NULL;
	state->wide = NULL;
	state->rows = NULL;
	state->order = NULL;
	state->same = NULL;
	state->words = NULL;
	state->count = state->room = state->word_rows = 0;
	state->taken = state->row = 0;
	state->used = 0;
	state->at = state->mark = 0;
	state->done = state->ended = state->compares = false;
	MemoryContextReset(state->context);
}

static void
sort_rows(CfdSortState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	ScanDirection direction = estate->es_direction;
	MemoryContext before;

	estate->es_direction = ForwardScanDirection;
	before = MemoryContextSwitchTo(state->context);
	state->bound = find_bound(state);
	state->word_room = Max(SEND_ROWS, state->bound > 0 ? (uint32) state->bound + BOUND_ROWS : 0);
	state->words = palloc(sizeof(uint64) * state->word_room * state->set.columns);
	if (state->waits)
		begin_plain_sorts(state);
	if (state->bound > 0)
		take_rows_bounded(state);
	else
		cfd_sort_take_rows(state);
	if (state->compares)
		compare_store(state);
	else if (state->store != NULL)
		sort_store(state);
	cfd_set_reset(&state->set);
	MemoryContextSwitchTo(before);
	estate->es_direction = direction;
	state->done = true;
}

/* As PostgreSQL's sort moves: `at` rows have been given. */
static bool
move(CfdSortState *state, bool forward)
{
	if (forward)
	{
		state->ended = state->at >= state->count;
		state->at += !state->ended;
		return !state->ended;
	}
	if (state->ended)
		state->ended = false;
	else if (state->at > 0)
		state->at--;
	return state->at > 0;
}

/*
 * Nodes above (Unique, groups of sorted rows) ask whether the row equals the one before, or the
 * first of those that equal that: the ranks have told.
 */
static void
tell_neighbour(CfdSortState *state, int64 place)
{
	static CfdAnswer answers[4];
	bool		null;
	Datum		value = slot_getattr(state->kept, state->keys[0].column, &null);
	bool		same = state->same[place];
	CfdSubject *subject;

	/* The sort has moved, or begins. */
	if (state->told + 1 != place)
		state->last = 0, state->last_same = false;
	/* The first that equal the row before: that itself, unless it equalled others. */
	if (!state->last_same)
		state->first = state->last;
	cfd_known_forget(CFD_SCOPE_SORTED);
	if (!null)
	{
		subject = cfd_known_subject(CFD_SCOPE_SORTED, DatumGetUInt64(value), answers, lengthof(answers));
		subject->test = state->equality;
		subject->holds = CFD_HOLDS_EQUAL;
		subject->side = CFD_EITHER;
		cfd_known_put(subject, state->last, same ? 0 : 1);
		cfd_known_put(subject, state->first, same ? 0 : 1);
	}
	state->last = null ? 0 : DatumGetUInt64(value);
	state->last_same = same;
	state->told = place;
}

static TupleTableSlot *
next_kept(CfdSortState *state, bool forward)
{
	int64		place;

	if (!move(state, forward))
		return ExecClearTuple(state->kept);
	place = state->at - 1;
	ExecStoreMinimalTuple(state->rows[state->order != NULL ? state->order[place] : place],
						  state->kept, false);
	if (forward && state->same != NULL)
		tell_neighbour(state, place);
	return state->kept;
}

static TupleTableSlot *
cfd_sort_next_row(CustomScanState *node)
{
	CfdSortState *state = (CfdSortState *) node;
	bool		forward = ScanDirectionIsForward(node->ss.ps.state->es_direction);

	CHECK_FOR_INTERRUPTS();
	if (!state->done)
		sort_rows(state);
	return state->sorter != NULL ? next_spilled(state, forward) : next_kept(state, forward);
}

static void
cfd_sort_end(CustomScanState *node)
{
	CfdSortState *state = (CfdSortState *) node;

	drop_all(state);
	ExecEndNode(outerPlanState(state));
}

static void
cfd_sort_rescan(CustomScanState *node)
{
	CfdSortState *state = (CfdSortState *) node;
	PlanState  *outer = outerPlanState(state);

	if (!state->done)
		return;
	if (outer->chgParam == NULL && state->bounds == NIL &&
		(state->sorter == NULL || state->random_access))
	{
		state->at = 0;
		state->ended = false;
		if (state->sorter != NULL)
			tuplesort_rescan(state->sorter);
		return;
	}
	drop_all(state);
	if (outer->chgParam == NULL)
		ExecReScan(outer);
}

static void
cfd_sort_mark(CustomScanState *node)
{
	CfdSortState *state = (CfdSortState *) node;

	if (state->sorter != NULL)
		tuplesort_markpos(state->sorter);
	state->mark = state->at;
	state->mark_ended = state->ended;
}

static void
restore(CustomScanState *node)
{
	CfdSortState *state = (CfdSortState *) node;

	if (state->sorter != NULL)
		tuplesort_restorepos(state->sorter);
	state->at = state->mark;
	state->ended = state->mark_ended;
}

/* ---------- EXPLAIN ---------- */

static void
cfd_sort_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	CfdSortState *state = (CfdSortState *) node;
	Plan	   *plan = node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, plan, ancestors);
	bool		prefix = list_length(es->rtable) > 1 || es->verbose;
	List	   *names = NIL;

	for (int i = 0; i < state->key_count; i++)
	{
		const Key  *key = &state->keys[i];
		TargetEntry *entry = get_tle_by_resno(plan->targetlist, key->column);
		char	   *name = deparse_expression((Node *) entry->expr, context, prefix, true);

		names = lappend(names, psprintf("%s%s%s", name, key->descending ? " DESC" : "",
										key->nulls_first == key->descending ? "" :
										key->nulls_first ? " NULLS FIRST" : " NULLS LAST"));
	}
	ExplainPropertyList("Sort Key", names, es);
	if (es->analyze)
	{
		ExplainPropertyInteger("Rows Ranked", NULL, state->ranked, es);
		ExplainPropertyInteger("Exchanges", NULL, state->exchanges, es);
		ExplainPropertyText("Rows Kept", state->sorter != NULL ? "disk" : "memory", es);
	}
}

static const CustomExecMethods exec_methods = {
	.CustomName = "ConfideSort",
	.BeginCustomScan = cfd_sort_begin,
	.ExecCustomScan = cfd_sort_next_row,
	.EndCustomScan = cfd_sort_end,
	.ReScanCustomScan = cfd_sort_rescan,
	.MarkPosCustomScan = cfd_sort_mark,
	.RestrPosCustomScan = restore,
	.ExplainCustomScan = cfd_sort_explain,
};

const CustomScanMethods cfd_sort_methods = {
	.CustomName = "ConfideSort",
	.CreateCustomScanState = cfd_sort_create_state,
};
