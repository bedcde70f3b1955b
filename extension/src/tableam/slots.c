/*
 * slots.c
 *	  Promotes the FIDs in slots: see slots.h.
 *
 * A FID is 8 bytes by value, so it can be replaced in place: in the slot's array of values, or in a
 * tuple that belongs to the slot.
 *
 * Invariant: a tuple that the slot does not own is copied before it is changed.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/tupmacs.h"
#include "compat/compat.h"
#include "nodes/bitmapset.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "session/pins.h"
#include "value/adopt.h"
#include "value/promote.h"
#include "value/runs.h"
#include "value/sealed.h"
#include "index/insertion.h"
#include "ledger/ledger.h"
#include "tableam/arrays.h"
#include "tableam/slots.h"
#include "utils/rel.h"

#define STACK_ITEMS 64
/* Minimum number of rows to promote column by column. */
#define RUNS_MIN 16
#define RUNS_MAX (1024 * 1024)

/* Returns the physical tuple in a slot; NULL if there are only values. */
static HeapTuple
tuple_of(TupleTableSlot *slot)
{
	if (TTS_IS_HEAPTUPLE(slot) || TTS_IS_BUFFERTUPLE(slot))
		return ((HeapTupleTableSlot *) slot)->tuple;
	return NULL;
}

/* Collects the FIDs to promote in a slot; returns their number. */
static int
cfd_slots_collect(const CfdColumns *columns, TupleTableSlot *slot, CfdPromotion *items)
{
	int			count = 0;

	slot_getsomeattrs(slot, columns->column[columns->count - 1].index + 1);
	for (int i = 0; i < columns->count; i++)
	{
		const CfdColumn *column = &columns->column[i];
		CfdFid		fid;

		if (slot->tts_isnull[column->index])
			continue;
		fid = DatumGetUInt64(slot->tts_values[column->index]);
		if (cfd_fid_partition(fid) == column->partition)
			continue;
		items[count++] = (CfdPromotion) {.fid = fid, .partition = column->partition, .type = column->type};
	}
	return count;
}

/* Replaces the collected FIDs in the slot's values. */
static int
replace_values(const CfdColumns *columns, TupleTableSlot *slot, const CfdPromotion *items)
{
	int			count = 0;

	for (int i = 0; i < columns->count; i++)
	{
		const CfdColumn *column = &columns->column[i];

		if (slot->tts_isnull[column->index] ||
			cfd_fid_partition(DatumGetUInt64(slot->tts_values[column->index])) == column->partition)
			continue;
		slot->tts_values[column->index] = UInt64GetDatum(items[count++].fid);
	}
	return count;
}

/* Replaces FIDs in a tuple's bytes; the tuple has all protected columns. */
static int
replace_bytes(const CfdColumns *columns, TupleDesc desc, HeapTuple tuple, const CfdPromotion *items)
{
	HeapTupleHeader header = tuple->t_data;
	char	   *data = (char *) header + header->t_hoff;
	bool		nulls = HeapTupleHasNulls(tuple);
	uint32		offset = 0;
	int			next = 0;
	int			count = 0;

	for (int i = 0; next < columns->count; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		bool		protected_column = columns->column[next].index == i;

		if (!(nulls && att_isnull(i, header->t_bits)))
		{
			if (attribute->attlen == -1)
				offset = att_align_pointer(offset, attribute->attalign, -1, data + offset);
			else
				offset = att_align_nominal(offset, attribute->attalign);
			if (protected_column &&
				cfd_fid_partition(cfd_get64(data + offset)) != columns->column[next].partition)
				cfd_put64(data + offset, items[count++].fid);
			offset = att_addlength_pointer(offset, attribute->attlen, data + offset);
		}
		if (protected_column)
			next++;
	}
	return count;
}

/* Gives the slot a new tuple, for one that was made before columns were added. */
static int
replace_tuple(const CfdColumns *columns, TupleTableSlot *slot, const CfdPromotion *items)
{
	MemoryContext old = MemoryContextSwitchTo(slot->tts_mcxt);
	ItemPointerData tid = slot->tts_tid;
	HeapTuple	tuple;
	int			count;

	slot_getallattrs(slot);
	count = replace_values(columns, slot, items);
	tuple = heap_form_tuple(slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull);
	tuple->t_self = tid;
	tuple->t_tableOid = slot->tts_tableOid;
	MemoryContextSwitchTo(old);
	ExecForceStoreHeapTuple(tuple, slot, true);
	slot->tts_tid = tid;
	return count;
}

static int
cfd_slots_replace(const CfdColumns *columns, TupleTableSlot *slot, const CfdPromotion *items)
{
	int			natts = columns->column[columns->count - 1].index + 1;
	HeapTuple	tuple = tuple_of(slot);
	int			count;

	if (tuple == NULL)
	{
		if (!TTS_IS_MINIMALTUPLE(slot))
			return replace_values(columns, slot, items);
		return replace_tuple(columns, slot, items);
	}
	if (HeapTupleHeaderGetNatts(tuple->t_data) < natts)
		return replace_tuple(columns, slot, items);
	ExecMaterializeSlot(slot);
	count = replace_bytes(columns, slot->tts_tupleDescriptor, tuple_of(slot), items);
	if (slot->tts_nvalid >= natts)
		replace_values(columns, slot, items);
	else
		slot->tts_nvalid = 0;
	return count;
}

/* Whether a protected column has a value; if none has, no keeper is needed. */
static bool
cfd_slots_has_values(const CfdColumns *columns, TupleTableSlot **slots, int count)
{
	if (columns->count == 0)
		return false;
	for (int i = 0; i < count; i++)
	{
		slot_getsomeattrs(slots[i], columns->column[columns->count - 1].index + 1);
		for (int n = 0; n < columns->count; n++)
		{
			if (!slots[i]->tts_isnull[columns->column[n].index])
				return true;
		}
	}
	return false;
}

/* Collects the FIDs to promote column by column; 0 where there is none. */
static int
collect_columns(const CfdColumns *columns, TupleTableSlot **slots, int rows, CfdFid *fids)
{
	int			total = 0;

	for (int row = 0; row < rows; row++)
	{
		TupleTableSlot *slot = slots[row];

		slot_getsomeattrs(slot, columns->column[columns->count - 1].index + 1);
		for (int n = 0; n < columns->count; n++)
		{
			const CfdColumn *column = &columns->column[n];
			CfdFid		fid = 0;

			if (!slot->tts_isnull[column->index])
				fid = DatumGetUInt64(slot->tts_values[column->index]);
			if (cfd_fid_partition(fid) == column->partition)
				fid = 0;
			total += fid != 0;
			fids[(Size) n * rows + row] = fid;
		}
	}
	return total;
}

/* Promotes many rows at once; returns false if they must be promoted one by one. */
static bool
promote_columns(Relation relation, const CfdColumns *columns, TupleTableSlot **slots, int rows)
{
	Size		cells = (Size) columns->count * rows;
	CfdPromotion *items;
	CfdFid	   *fids;
	bool		done = true;

	if (rows < RUNS_MIN || cells > RUNS_MAX)
		return false;
	items = palloc(sizeof(CfdPromotion) * columns->count);
	fids = palloc(sizeof(CfdFid) * cells);
	if (collect_columns(columns, slots, rows, fids) > 0)
	{
		cfd_pin_writer();
		done = cfd_promote_runs(relation, columns, fids, rows);
		for (int row = 0; done && row < rows; row++)
		{
			int			count = 0;

			for (int n = 0; n < columns->count; n++)
			{
				CfdFid		fid = fids[(Size) n * rows + row];

				if (fid != 0)
					items[count++].fid = fid;
			}
			if (count > 0)
				cfd_slots_replace(columns, slots[row], items);
		}
	}
	pfree(fids);
	pfree(items);
	return done;
}

/* Returns the protected columns by their position in the slots. */
static const CfdColumns *
in_slots(const CfdColumns *columns, const List *numbers)
{
	CfdColumns *result;
	int			index = 0;
	ListCell   *cell;

	if (numbers == NIL)
		return columns;
	result = palloc(offsetof(CfdColumns, column) + columns->count * sizeof(CfdColumn));
	result->generation = columns->generation;
	result->count = result->arrays = 0;
	foreach(cell, numbers)
	{
		for (int n = 0; n < columns->count; n++)
		{
			if (columns->column[n].index == lfirst_int(cell) - 1)
				result->column[result->count++] =
					(CfdColumn) {.index = index, .partition = columns->column[n].partition, .type = columns->column[n].type};
		}
		index++;
	}
	return result;
}

/* Promotes rows in one message, value by value. */
static void
promote_values(Relation relation, const List *numbers, TupleTableSlot **slots, int count)
{
	const CfdColumns *columns = in_slots(cfd_open_columns(relation), numbers);
	CfdPromotion stack[STACK_ITEMS];
	CfdPromotion *items = stack;
	int			total = 0;
	int			done = 0;

	if ((int64) columns->count * count > STACK_ITEMS)
		items = MemoryContextAllocHuge(CurrentMemoryContext,
									   sizeof(CfdPromotion) * (Size) columns->count * count);
	for (int i = 0; i < count; i++)
		total += cfd_slots_collect(columns, slots[i], items + total);
	if (total > 0)
	{
		cfd_pin_writer();
		if (!cfd_adopt(relation, items, total))
			cfd_promote(relation, items, total);
		columns = in_slots(cfd_open_columns(relation), numbers);
		for (int i = 0; i < count; i++)
			done += cfd_slots_replace(columns, slots[i], items + done);
		Assert(done == total);
	}
	if (items != stack)
		pfree(items);
}

/* Whether a row begins with a value that may be adopted, as the others are then likely to be. */
static bool
begins_sealed(const CfdColumns *columns, TupleTableSlot *slot)
{
	CfdPromotion items[STACK_ITEMS];
	CfdSealed	sealed;

	return columns->count <= STACK_ITEMS && cfd_slots_collect(columns, slot, items) > 0 &&
		cfd_sealed_find(items[0].fid, &sealed);
}

void
cfd_promote_slots(Relation relation, const List *numbers, TupleTableSlot **slots, int count)
{
	const CfdColumns *columns;

	/* A batch of ConfidePromote has only some of the columns: arrays are promoted when its rows are written. */
	if (numbers == NIL)
		cfd_promote_arrays(relation, slots, count);
	if (!cfd_slots_has_values(in_slots(cfd_columns(relation), numbers), slots, count))
		return;
	columns = in_slots(cfd_open_columns(relation), numbers);
	if (begins_sealed(columns, slots[0]) || !promote_columns(relation, columns, slots, count))
		promote_values(relation, numbers, slots, count);
}

/* Numbers (attribute - 1) of the promoted values, in the order of collection. */
static void
numbers_of(const CfdColumns *columns, TupleTableSlot *slot, int *numbers)
{
	for (int i = 0; i < columns->count; i++)
	{
		const CfdColumn *column = &columns->column[i];

		if (!slot->tts_isnull[column->index] &&
			cfd_fid_partition(DatumGetUInt64(slot->tts_values[column->index])) != column->partition)
			*numbers++ = column->index;
	}
}

/* Whether one of the values is of a column that an index has. */
static bool
is_indexed(Relation relation, const CfdPromotion *items, int count)
{
	Bitmapset  *keys;
	const CfdColumns *columns;
	bool		found = false;

	if (!relation->rd_rel->relhasindex)
		return false;
	/* Reading the indexes may free the columns. */
	keys = RelationGetIndexAttrBitmap(relation, CFD_INDEX_ATTR_HOT);
	columns = cfd_open_columns(relation);
	for (int i = 0; i < columns->count && !found; i++)
	{
		if (!bms_is_member(columns->column[i].index + 1 - FirstLowInvalidHeapAttributeNumber, keys))
			continue;
		for (int n = 0; n < count; n++)
			found |= items[n].partition == columns->column[i].partition;
	}
	bms_free(keys);
	return found;
}

/*
 * Gives leased FIDs to the values of a version that goes to a history, and
 * tells the keeper. Returns false, with nothing done, if they have to be
 * promoted. (An index would compare them with those of rows whose transactions
 * have not committed, and of which the keeper may never have heard.)
 */
static bool
move_to_history(Relation history, TupleTableSlot *slot, CfdPromotion *items, int count)
{
	CfdWireMoved moved[STACK_ITEMS];

	if (count > cfd_ledger_moves_left() || is_indexed(history, items, count))
		return false;
	for (int i = 0; i < count; i++)
		moved[i].source = items[i].fid;
	if (!cfd_lease(history, items, count))
		return false;
	for (int i = 0; i < count; i++)
		moved[i].into = items[i].fid;
	cfd_ledger_tell_moved(moved, count);
	(void) cfd_slots_replace(cfd_open_columns(history), slot, items);
	return true;
}

/* Promotes a row's values. Searches its indexes, if asked. */
static void
promote_row(Relation relation, TupleTableSlot *slot, bool search)
{
	const CfdColumns *columns;
	CfdPromotion items[STACK_ITEMS];
	int			numbers[STACK_ITEMS];
	int			count;

	if (!cfd_holds_fids(cfd_columns(relation)))
		return;
	cfd_promote_arrays(relation, &slot, 1);
	columns = cfd_columns(relation);
	if (columns->count > STACK_ITEMS)
	{
		cfd_promote_slots(relation, NIL, &slot, 1);
		return;
	}
	if (!cfd_slots_has_values(columns, &slot, 1))
		return;
	columns = cfd_open_columns(relation);
	count = cfd_slots_collect(columns, slot, items);
	if (count == 0)
		return;
	numbers_of(columns, slot, numbers);
	cfd_pin_writer();
	if (cfd_ledger_moving && move_to_history(relation, slot, items, count))
		return;
	if (!cfd_adopt(relation, items, count) &&
		(!search || !cfd_insertion_promote(relation, slot, items, numbers, count)))
		cfd_promote(relation, items, count);
	/* What was done meanwhile may have freed them. */
	(void) cfd_slots_replace(cfd_open_columns(relation), slot, items);
}

void
cfd_promote_inserted(Relation relation, TupleTableSlot *slot)
{
	promote_row(relation, slot, true);
}

/* Whether a value of an indexed column still has to be promoted. */
static bool
changes_key(Relation relation, const CfdColumns *columns, TupleTableSlot *slot)
{
	Bitmapset  *keys = RelationGetIndexAttrBitmap(relation, CFD_INDEX_ATTR_HOT);
	bool		found = false;

	for (int i = 0; i < columns->count && !found; i++)
	{
		const CfdColumn *column = &columns->column[i];

		found = !slot->tts_isnull[column->index] &&
			cfd_fid_partition(DatumGetUInt64(slot->tts_values[column->index])) != column->partition &&
			bms_is_member(column->index + 1 - FirstLowInvalidHeapAttributeNumber, keys);
	}
	bms_free(keys);
	return found;
}

/* Whether a row's page has no room for a new version, as far as can be known now. */
static bool
leaves_page(Relation relation, ItemPointer old, TupleTableSlot *slot)
{
	Buffer		buffer;
	Size		room;
	Size		wanted;

	wanted = MAXALIGN(SizeofHeapTupleHeader) +
		MAXALIGN(heap_compute_data_size(slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull));
	buffer = ReadBuffer(relation, ItemPointerGetBlockNumber(old));
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	room = PageGetHeapFreeSpace(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	return wanted > room;
}

/* If a key changes, or the new version goes to another page, it needs index entries. */
void
cfd_promote_updated(Relation relation, ItemPointer old, TupleTableSlot *slot)
{
	bool		search;

	if (!cfd_holds_fids(cfd_columns(relation)))
		return;
	slot_getallattrs(slot);
	search = relation->rd_rel->relhasindex &&
		(changes_key(relation, cfd_columns(relation), slot) || leaves_page(relation, old, slot));
	promote_row(relation, slot, search);
}
