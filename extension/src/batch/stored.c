/*
 * stored.c
 *	  Rows as they lie on their page: see stored.h.
 *
 * In page mode a heap scan has a page's visible rows in a list, holds the page's pin
 * until it is asked for more, and knows how far it has come in the list: so reading
 * ahead in the list and saying so is all there is to it.
 *
 * Invariant: as in stored.h.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "session/channel.h"
#include "batch/stored.h"
#include "value/types.h"
#include "pgstat.h"
#include "storage/bufmgr.h"

/* Of the processor's cache; where lines are longer, some are asked for twice. */
#define LINE_BYTES 64

CfdStored *
cfd_stored_create(int last_attribute)
{
	CfdStored  *stored = palloc0(sizeof(CfdStored));

	stored->last_attribute = last_attribute;
	stored->offsets = palloc(Max(last_attribute, 1) * sizeof(int));
	return stored;
}

static void
cfd_stored_describe(CfdStored *stored, TupleDesc desc)
{
	int			offset = 0;

	stored->described = desc;
	stored->fixed = 0;
	for (int i = 0; i < Min(desc->natts, stored->last_attribute); i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (attribute->attlen <= 0 || !attribute->attbyval)
			return;
		offset = att_align_nominal(offset, attribute->attalign);
		stored->offsets[i] = offset;
		stored->fixed = i + 1;
		offset += attribute->attlen;
	}
}

/* Adds a row, unless it is an unusual one. */
static inline bool
cfd_stored_add(CfdStored *stored, HeapTupleHeader tuple)
{
	if ((tuple->t_infomask & HEAP_HASNULL) != 0 ||
		HeapTupleHeaderGetNatts(tuple) < stored->last_attribute)
		return false;
	stored->rows[stored->count++] = (const char *) tuple + tuple->t_hoff;
	return true;
}

/* The heap scan below, if all it reads is the child's result. */
static HeapScanDesc
plain_scan(PlanState *child)
{
	TableScanDesc scan;

	if (!IsA(child, SeqScanState) || child->qual != NULL || child->ps_ProjInfo != NULL ||
		child->state->es_epq_active != NULL || !ScanDirectionIsForward(child->state->es_direction))
		return NULL;
	scan = ((SeqScanState *) child)->ss.ss_currentScanDesc;
	if (scan == NULL || (scan->rs_flags & SO_ALLOW_PAGEMODE) == 0 ||
		scan->rs_rd->rd_tableam->scan_getnextslot != heap_getnextslot)
		return NULL;
	return (HeapScanDesc) scan;
}

/*
 * Has a page brought into the cache, all of it at once: row by row the processor would wait for
 * the memory several times a row, which was more than half of a scan's time.
 */
static void
prefetch(Page page)
{
	for (int at = ((PageHeader) page)->pd_upper; at < BLCKSZ; at += LINE_BYTES)
		__builtin_prefetch(page + at);
}

static void
take_page(CfdStored *stored, PlanState *child, int most)
{
	HeapScanDesc scan = plain_scan(child);
	Page		page;
	int			before = stored->count;

	if (scan == NULL || !BufferIsValid(scan->rs_cbuf))
		return;
	page = BufferGetPage(scan->rs_cbuf);
	if (scan->rs_cindex == 0)
		prefetch(page);
	while (stored->count < most && (int) scan->rs_cindex + 1 < (int) scan->rs_ntuples)
	{
		ItemId		item = PageGetItemId(page, scan->rs_vistuples[scan->rs_cindex + 1]);

		if (!cfd_stored_add(stored, (HeapTupleHeader) PageGetItem(page, item)))
			break;
		scan->rs_cindex++;
	}
	/* What counts rows shall count these. */
	for (int i = before; i < stored->count; i++)
		pgstat_count_heap_getnext(scan->rs_base.rs_rd);
	if (child->instrument != NULL)
		child->instrument->tuplecount += stored->count - before;
}

int
cfd_stored_take(CfdStored *stored, PlanState *child, TupleTableSlot *slot, int most)
{
	HeapTuple	tuple;

	if (!TTS_IS_BUFFERTUPLE(slot))
		return 0;
	if (unlikely(stored->described != slot->tts_tupleDescriptor))
		cfd_stored_describe(stored, slot->tts_tupleDescriptor);
	tuple = ((HeapTupleTableSlot *) slot)->tuple;
	stored->count = 0;
	if (stored->fixed < stored->last_attribute || tuple == NULL || !cfd_stored_add(stored, tuple->t_data))
		return 0;
	take_page(stored, child, Min(most, MaxHeapTuplesPerPage));
	return stored->count;
}

void
cfd_stored_fids(const CfdStored *stored, AttrNumber attribute, CfdFid *out)
{
	int			offset = stored->offsets[attribute - 1];
	bool		invalid = false;

	for (int i = 0; i < stored->count; i++)
	{
		out[i] = *(const CfdFid *) (stored->rows[i] + offset);
		invalid |= out[i] == 0;
	}
	if (unlikely(invalid))
		cfd_invalid_fid();
}

void
cfd_stored_datums(const CfdStored *stored, AttrNumber attribute, Datum *out)
{
	int			offset = stored->offsets[attribute - 1];
	int			length = TupleDescAttr(stored->described, attribute - 1)->attlen;

	if (length == sizeof(Datum))
	{
		for (int i = 0; i < stored->count; i++)
			out[i] = *(const Datum *) (stored->rows[i] + offset);
		return;
	}
	for (int i = 0; i < stored->count; i++)
		out[i] = fetch_att(stored->rows[i] + offset, true, length);
}

void
cfd_stored_bools(const CfdStored *stored, AttrNumber attribute, unsigned char *out)
{
	int			offset = stored->offsets[attribute - 1];

	for (int i = 0; i < stored->count; i++)
		out[i] = *(const bool *) (stored->rows[i] + offset) ? 1 : 0;
}
