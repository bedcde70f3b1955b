/*
 * arrays.c
 *	  Promotes the elements of arrays; see arrays.h.
 *
 * A row's arrays may belong to another row, so they are not changed in place:
 * the slot gets a tuple with copies of them.
 *
 * Invariant: as in arrays.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "lib/stringinfo.h"
#include "session/channel.h"
#include "session/pins.h"
#include "tableam/arrays.h"
#include "utils/rel.h"
#include "value/arrays.h"
#include "value/promote.h"

/* Collects the FIDs of an array to promote. */
static void
collect_elements(const CfdColumn *column, Datum value, StringInfo items)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	int			count;
	CfdFid	   *fids = cfd_array_fids(array, &count);

	for (int i = 0; i < count; i++)
	{
		CfdPromotion item = {.fid = fids[i],.partition = column->partition,.type = column->type};

		if (cfd_fid_partition(fids[i]) != column->partition)
			appendBinaryStringInfo(items, (char *) &item, sizeof(item));
	}
	if ((Pointer) array != DatumGetPointer(value))
		pfree(array);
}

/* Promotions that have been done, in the order of collection. */
typedef struct Promoted
{
	const CfdPromotion *next;
	const CfdPromotion *end;
} Promoted;

/* A copy of the array with promoted FIDs. */
static Datum
replace_elements(const CfdColumn *column, Datum value, Promoted *promoted)
{
	ArrayType  *array = DatumGetArrayTypePCopy(value);
	int			count;
	CfdFid	   *fids = cfd_array_fids(array, &count);

	for (int i = 0; i < count; i++)
	{
		if (cfd_fid_partition(fids[i]) == column->partition)
			continue;
		if (promoted->next == promoted->end || promoted->next->partition != column->partition)
			cfd_violation("elements were promoted into another partition");
		fids[i] = promoted->next++->fid;
	}
	return PointerGetDatum(array);
}

/* Returns the number of FIDs that were collected. */
static int
collect_row(const CfdColumns *columns, TupleTableSlot *slot, StringInfo items)
{
	const CfdColumn *arrays = columns->column + columns->count;
	int			before = items->len;

	slot_getallattrs(slot);
	for (int n = 0; n < columns->arrays; n++)
	{
		if (!slot->tts_isnull[arrays[n].index])
			collect_elements(&arrays[n], slot->tts_values[arrays[n].index], items);
	}
	return (items->len - before) / (int) sizeof(CfdPromotion);
}

/* Gives the slot a tuple with the promoted FIDs. */
static void
replace_row(const CfdColumns *columns, TupleTableSlot *slot, Promoted *promoted)
{
	const CfdColumn *arrays = columns->column + columns->count;
	TupleDesc	desc = slot->tts_tupleDescriptor;
	Datum	   *values = palloc(desc->natts * sizeof(Datum));
	Oid			relation = slot->tts_tableOid;
	ItemPointerData tid = slot->tts_tid;
	MemoryContext old;
	HeapTuple	tuple;

	memcpy(values, slot->tts_values, desc->natts * sizeof(Datum));
	for (int n = 0; n < columns->arrays; n++)
	{
		if (!slot->tts_isnull[arrays[n].index])
			values[arrays[n].index] = replace_elements(&arrays[n], values[arrays[n].index], promoted);
	}
	old = MemoryContextSwitchTo(slot->tts_mcxt);
	tuple = heap_form_tuple(desc, values, slot->tts_isnull);
	MemoryContextSwitchTo(old);
	tuple->t_self = tid;
	tuple->t_tableOid = relation;
	for (int n = 0; n < columns->arrays; n++)
	{
		if (!slot->tts_isnull[arrays[n].index])
			pfree(DatumGetPointer(values[arrays[n].index]));
	}
	pfree(values);
	ExecForceStoreHeapTuple(tuple, slot, true);
	slot_getallattrs(slot);
	slot->tts_tableOid = relation;
	slot->tts_tid = tid;
}

void
cfd_promote_arrays(Relation relation, TupleTableSlot **slots, int count)
{
	Promoted	promoted;
	StringInfoData items;
	int		   *found;
	int			total = 0;

	if (cfd_columns(relation)->arrays == 0)
		return;
	initStringInfo(&items);
	found = palloc(count * sizeof(int));
	for (int i = 0; i < count; i++)
		total += found[i] = collect_row(cfd_open_columns(relation), slots[i], &items);
	if (total > 0)
	{
		cfd_pin_writer();
		cfd_promote(relation, (CfdPromotion *) items.data, total);
	}
	promoted.next = (const CfdPromotion *) items.data;
	promoted.end = promoted.next + total;
	for (int i = 0; i < count; i++)
	{
		if (found[i] > 0)
			replace_row(cfd_open_columns(relation), slots[i], &promoted);
	}
	pfree(found);
	pfree(items.data);
}
