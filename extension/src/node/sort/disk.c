/*
 * disk.c
 *	  Sorts of more rows than fit into memory: by their ranks, using
 *	  PostgreSQL's sort; or by PostgreSQL's sort alone if there are more
 *	  rows than the keeper ranks at once.
 *
 * Invariants: as in state.h.
 */
#include "postgres.h"

#include "node/sort/state.h"
#include "catalog/pg_operator.h"
#include "miscadmin.h"

/* ---------- rows on disk ---------- */

/* The row type with the rank as an additional first column. */
static TupleDesc
wide_desc(TupleDesc desc)
{
	TupleDesc	wide = CreateTemplateTupleDesc(desc->natts + 1);

	TupleDescInitEntry(wide, 1, "rank", INT4OID, -1, 0);
	for (int i = 1; i <= desc->natts; i++)
		TupleDescCopyEntry(wide, i + 1, desc, i);
	return wide;
}

void
cfd_sort_by_rank(CfdSortState *state)
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

/* Sorts the rows by comparing their values. */
void
cfd_sort_by_comparison(CfdSortState *state)
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

TupleTableSlot *
cfd_sort_next_spilled(CfdSortState *state, bool forward)
{
	TupleTableSlot *slot = state->spilled;
	int			natts = slot->tts_tupleDescriptor->natts;

	if (state->compares)
	{
		/* At the end this clears the slot. */
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
