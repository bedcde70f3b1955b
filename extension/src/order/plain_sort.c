/*
 * plain_sort.c
 *	  Ranks of a plain key column; see plain_sort.h.
 *
 * Invariant: as in plain_sort.h.
 */
#include "postgres.h"

#include "order/plain_sort.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"
#include "utils/tuplesort.h"

struct CfdPlainSort
{
	Tuplesortstate *sorter;		/* columns: value and row number */
	TupleTableSlot *input;
	TupleTableSlot *output[2];
	SortSupportData order;
	uint32		rows;
};

CfdPlainSort *
cfd_plain_sort_create(Oid type, Oid operator, Oid collation, bool nulls_first)
{
	CfdPlainSort *sort = palloc0(sizeof(CfdPlainSort));
	TupleDesc	desc = CreateTemplateTupleDesc(2);
	AttrNumber	column = 1;

	TupleDescInitEntry(desc, 1, "value", type, -1, 0);
	TupleDescInitEntry(desc, 2, "row", INT4OID, -1, 0);
	sort->sorter = tuplesort_begin_heap(desc, 1, &column, &operator, &collation, &nulls_first, work_mem,
										NULL, TUPLESORT_NONE);
	sort->input = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	for (int i = 0; i < 2; i++)
		sort->output[i] = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	sort->order.ssup_cxt = CurrentMemoryContext;
	sort->order.ssup_collation = collation;
	sort->order.ssup_nulls_first = nulls_first;
	PrepareSortSupportFromOrderingOp(operator, &sort->order);
	return sort;
}

void
cfd_plain_sort_add(CfdPlainSort *sort, Datum value, bool null)
{
	TupleTableSlot *slot = ExecClearTuple(sort->input);

	slot->tts_values[0] = value;
	slot->tts_isnull[0] = null;
	slot->tts_values[1] = UInt32GetDatum(sort->rows++);
	slot->tts_isnull[1] = false;
	tuplesort_puttupleslot(sort->sorter, ExecStoreVirtualTuple(slot));
}

uint32 *
cfd_plain_sort_ranks(CfdPlainSort *sort)
{
	uint32	   *ranks = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint32) * Max(sort->rows, 1));
	TupleTableSlot *before = NULL;
	uint32		rank = 0;

	tuplesort_performsort(sort->sorter);
	for (uint32 i = 0; i < sort->rows; i++)
	{
		TupleTableSlot *slot = sort->output[i % 2];

		if (!tuplesort_gettupleslot(sort->sorter, true, true, slot, NULL))
			elog(ERROR, "a sort has lost rows");
		slot_getallattrs(slot);
		if (before != NULL &&
			ApplySortComparator(before->tts_values[0], before->tts_isnull[0], slot->tts_values[0],
								slot->tts_isnull[0], &sort->order) != 0)
			rank++;
		ranks[DatumGetUInt32(slot->tts_values[1])] = rank;
		before = slot;
		CHECK_FOR_INTERRUPTS();
	}
	return ranks;
}

void
cfd_plain_sort_end(CfdPlainSort *sort)
{
	for (int i = 0; i < 2; i++)
		ExecDropSingleTupleTableSlot(sort->output[i]);
	ExecDropSingleTupleTableSlot(sort->input);
	tuplesort_end(sort->sorter);
}
