/*
 * row_store.c
 *	  Rows of an index build on disk; see row_store.h.
 *
 * A stored row consists of its rank (0 until it is set), its TID, whether it
 * is alive, and the index's values.
 *
 * Invariant: as in row_store.h.
 */
#include "postgres.h"

#include "index/row_store.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/rel.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

/* Columns before the values. */
enum
{
	RANK,
	PLACE,
	ALIVE,
	VALUES
};

struct CfdRowStore
{
	TupleDesc	desc;
	Tuplestorestate *store;
	Tuplesortstate *sorter;
	TupleTableSlot *input;		/* for rows being stored */
	TupleTableSlot *output;		/* for rows being returned */
};

static TupleDesc
row_desc(TupleDesc index)
{
	TupleDesc	desc = CreateTemplateTupleDesc(index->natts + VALUES);

	TupleDescInitEntry(desc, RANK + 1, "rank", INT4OID, -1, 0);
	TupleDescInitEntry(desc, PLACE + 1, "place", TIDOID, -1, 0);
	TupleDescInitEntry(desc, ALIVE + 1, "alive", BOOLOID, -1, 0);
	for (int i = 1; i <= index->natts; i++)
		TupleDescCopyEntry(desc, VALUES + i, index, i);
	return desc;
}

/* Tuplestore and tuplesort exist at the same time, so each gets half of the memory. */
CfdRowStore *
cfd_row_store_create(Relation index)
{
	CfdRowStore *store = palloc0(sizeof(CfdRowStore));

	store->desc = row_desc(RelationGetDescr(index));
	store->store = tuplestore_begin_heap(false, false, maintenance_work_mem / 2);
	tuplestore_set_eflags(store->store, EXEC_FLAG_REWIND);
	store->input = MakeSingleTupleTableSlot(store->desc, &TTSOpsVirtual);
	store->output = MakeSingleTupleTableSlot(store->desc, &TTSOpsMinimalTuple);
	return store;
}

void
cfd_row_store_put(CfdRowStore *store, ItemPointer tid, bool alive, const Datum *values, const bool *nulls)
{
	TupleTableSlot *slot = ExecClearTuple(store->input);
	int			count = store->desc->natts - VALUES;

	memset(slot->tts_isnull, 0, sizeof(bool) * VALUES);
	slot->tts_values[RANK] = Int32GetDatum(0);
	slot->tts_values[PLACE] = PointerGetDatum(tid);
	slot->tts_values[ALIVE] = BoolGetDatum(alive);
	memcpy(slot->tts_values + VALUES, values, sizeof(Datum) * count);
	memcpy(slot->tts_isnull + VALUES, nulls, sizeof(bool) * count);
	tuplestore_puttupleslot(store->store, ExecStoreVirtualTuple(slot));
}

void
cfd_row_store_rewind(CfdRowStore *store)
{
	tuplestore_rescan(store->store);
}

/* Returns the row in the output slot. */
static bool
give(CfdRowStore *store, CfdStoredRow *row)
{
	TupleTableSlot *slot = store->output;

	slot_getallattrs(slot);
	row->tid = (ItemPointer) DatumGetPointer(slot->tts_values[PLACE]);
	row->alive = DatumGetBool(slot->tts_values[ALIVE]);
	row->values = slot->tts_values + VALUES;
	row->nulls = slot->tts_isnull + VALUES;
	return true;
}

bool
cfd_row_store_next(CfdRowStore *store, CfdStoredRow *row)
{
	CHECK_FOR_INTERRUPTS();
	return tuplestore_gettupleslot(store->store, true, false, store->output) && give(store, row);
}

void
cfd_row_store_rank(CfdRowStore *store, uint32 rank)
{
	TupleTableSlot *slot = ExecClearTuple(store->input);
	AttrNumber	columns[] = {RANK + 1, PLACE + 1};
	Oid			operators[] = {Int4LessOperator, TIDLessOperator};
	Oid			collations[] = {InvalidOid, InvalidOid};
	bool		nulls_first[] = {false, false};

	if (store->sorter == NULL)
		store->sorter = tuplesort_begin_heap(store->desc, 2, columns, operators, collations, nulls_first,
											 maintenance_work_mem / 2, NULL, TUPLESORT_NONE);
	memcpy(slot->tts_values, store->output->tts_values, sizeof(Datum) * store->desc->natts);
	memcpy(slot->tts_isnull, store->output->tts_isnull, sizeof(bool) * store->desc->natts);
	slot->tts_values[RANK] = Int32GetDatum((int32) rank);
	tuplesort_puttupleslot(store->sorter, ExecStoreVirtualTuple(slot));
}

void
cfd_row_store_sort(CfdRowStore *store)
{
	ExecClearTuple(store->output);
	tuplestore_end(store->store);
	store->store = NULL;
	if (store->sorter != NULL)
		tuplesort_performsort(store->sorter);
}

bool
cfd_row_store_next_sorted(CfdRowStore *store, CfdStoredRow *row)
{
	CHECK_FOR_INTERRUPTS();
	return store->sorter != NULL &&
		tuplesort_gettupleslot(store->sorter, true, false, store->output, NULL) && give(store, row);
}

void
cfd_row_store_end(CfdRowStore *store)
{
	ExecDropSingleTupleTableSlot(store->input);
	ExecDropSingleTupleTableSlot(store->output);
	if (store->store != NULL)
		tuplestore_end(store->store);
	if (store->sorter != NULL)
		tuplesort_end(store->sorter);
}
