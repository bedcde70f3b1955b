/*
 * places.c
 *	  Physical search for FIDs in pages and statistics; see places.h.
 *
 * A B-tree is read level by level from the leaves up, each level from left to
 * right along its sibling links. Page splits move entries to the right only
 * and copy keys upwards only, so nothing moves from an unread to an already
 * read page. Deleted pages are not reused while our snapshot is registered.
 *
 * Invariants: as in places.h.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/tupmacs.h"
#include "catalog/pg_am.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_statistic_ext.h"
#include "catalog/pg_statistic_ext_data.h"
#include "commands/vacuum.h"
#include "compat/compat.h"
#include "gc/places.h"
#include "miscadmin.h"
#include "statistics/extended_stats_internal.h"
#include "statistics/statistics.h"
#include "storage/bufmgr.h"
#include "value/types.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/* The FIDs of one page. */
typedef struct Found
{
	int			count;
	CfdFid		fids[CFD_PAGE_FIDS];
} Found;

static void
note(Found *found, CfdFid fid)
{
	if (found->count < lengthof(found->fids))
		found->fids[found->count++] = fid;
}

static void
cfd_places_hand_over(const CfdSearch *search, const Found *found)
{
	if (found->count > 0)
		search->sink(search->arg, found->fids, found->count);
}

static void
page_done(const CfdSearch *search)
{
	if (search->page_done != NULL)
		search->page_done(search->arg);
	/* Sleeps according to the vacuum cost settings, and checks for interrupts. */
	CFD_DELAY_POINT(false);
}

/* ---------- heap ---------- */

/* Length of a varlena value, or 0 if it exceeds the tuple. */
static uint32
varlena_bytes(const char *at, uint32 room)
{
	uint32		length;

	if (room < 1 || (!VARATT_IS_1B(at) && room < VARHDRSZ) || (VARATT_IS_1B_E(at) && room < VARHDRSZ_EXTERNAL))
		return 0;
	length = VARSIZE_ANY(at);
	return length <= room ? length : 0;
}

/* What a column of a table holds. */
typedef enum Holds
{
	NO_FIDS,
	ONE_FID,
	AN_ARRAY
} Holds;

/* Collects the FIDs of an array's elements that are not NULL, from its bytes in a tuple. */
static void
note_array(Found *found, const char *data, uint32 bytes)
{
	ArrayType	head;
	uint32		at;

	if (bytes < sizeof(head) || !VARATT_IS_4B_U(data))
		return;
	memcpy(&head, data, sizeof(head));
	if (head.ndim < 0 || head.ndim > MAXDIM || head.dataoffset < 0)
		return;
	for (at = ARR_DATA_OFFSET(&head); at + sizeof(CfdFid) <= bytes; at += sizeof(CfdFid))
		note(found, cfd_get64(data + at));
}

/*
 * Collects the FIDs of a tuple. Its inserting transaction may have added
 * columns and been aborted, so its layout may differ from the relation's.
 * Mistaking other bytes of such a tuple for FIDs does no harm.
 */
static void
search_tuple(TupleDesc desc, const Holds *holds, int natts, HeapTupleHeader tuple, uint32 length, Found *found)
{
	const char *data = (const char *) tuple + tuple->t_hoff;
	bool		nulls = (tuple->t_infomask & HEAP_HASNULL) != 0;
	uint32		room;
	uint32		offset = 0;

	if (length < SizeofHeapTupleHeader || tuple->t_hoff > length)
		return;
	room = length - tuple->t_hoff;
	natts = Min(natts, HeapTupleHeaderGetNatts(tuple));
	for (int i = 0; i < natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		uint32		bytes = attribute->attlen;

		if (nulls && att_isnull(i, tuple->t_bits))
			continue;
		if (attribute->attlen < 0 && offset >= room)
			return;
		if (attribute->attlen == -1)
			offset = att_align_pointer(offset, attribute->attalign, -1, data + offset);
		else
			offset = att_align_nominal(offset, attribute->attalign);
		if (offset > room)
			return;
		if (attribute->attlen == -1)
			bytes = varlena_bytes(data + offset, room - offset);
		else if (attribute->attlen == -2)
			bytes = strnlen(data + offset, room - offset) + 1;
		if (bytes == 0 || bytes > room - offset)
			return;
		if (holds[i] == ONE_FID)
			note(found, cfd_get64(data + offset));
		else if (holds[i] == AN_ARRAY)
			note_array(found, data + offset, bytes);
		offset += bytes;
	}
}

static bool
is_committed(HeapTupleHeader tuple)
{
	return HeapTupleHeaderXminCommitted(tuple) || TransactionIdDidCommit(HeapTupleHeaderGetXmin(tuple));
}

static void
search_heap_page(const CfdSearch *search, TupleDesc desc, const Holds *holds, int natts, Page page, Found *found)
{
	OffsetNumber last = PageGetMaxOffsetNumber(page);

	found->count = 0;
	for (OffsetNumber n = FirstOffsetNumber; n <= last; n = OffsetNumberNext(n))
	{
		ItemId		item = PageGetItemId(page, n);
		HeapTupleHeader tuple;

		if (!ItemIdIsNormal(item))
			continue;
		tuple = (HeapTupleHeader) PageGetItem(page, item);
		if (!search->committed || is_committed(tuple))
			search_tuple(desc, holds, natts, tuple, ItemIdGetLength(item), found);
	}
}

/* An array that is not stored in its row as it is would not be found there. */
static Holds
holds_array(Relation table, Form_pg_attribute attribute)
{
	if (attribute->attstorage != TYPSTORAGE_PLAIN)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("identifiers in column \"%s\" of \"%s\" cannot be found", NameStr(attribute->attname),
						RelationGetRelationName(table)),
				 errdetail("Arrays of protected values must have the storage \"plain\".")));
	return AN_ARRAY;
}

/* Number of attributes up to the last one that holds FIDs, and what each of them holds. */
static int
attributes_to_read(Relation table, Holds *holds)
{
	TupleDesc	desc = RelationGetDescr(table);
	int			natts = 0;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		holds[i] = NO_FIDS;
		if (attribute->attisdropped)
			continue;
		if (cfd_type_code(attribute->atttypid) != 0)
			holds[i] = ONE_FID;
		else if (cfd_array_code(attribute->atttypid) != 0)
			holds[i] = holds_array(table, attribute);
		if (holds[i] != NO_FIDS)
			natts = i + 1;
	}
	return natts;
}

void
cfd_search_heap(const CfdSearch *search, Relation table)
{
	TupleDesc	desc = RelationGetDescr(table);
	Holds	   *holds = palloc(Max(desc->natts, 1) * sizeof(Holds));
	int			natts = attributes_to_read(table, holds);
	BlockNumber blocks = natts > 0 ? RelationGetNumberOfBlocks(table) : 0;
	Found	   *found;

	found = palloc(sizeof(Found));
	for (BlockNumber n = 0; n < blocks; n++)
	{
		Buffer		buffer = ReadBufferExtended(table, MAIN_FORKNUM, n, RBM_NORMAL, search->strategy);
		Page		page = BufferGetPage(buffer);

		found->count = 0;
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		if (!PageIsNew(page))
			search_heap_page(search, desc, holds, natts, page, found);
		UnlockReleaseBuffer(buffer);
		cfd_places_hand_over(search, found);
		page_done(search);
	}
	pfree(found);
	pfree(holds);
}

/* ---------- B-trees ---------- */

bool
cfd_index_holds_fids(Relation index)
{
	TupleDesc	desc = RelationGetDescr(index);

	/* A hash index contains hashes only; its column has type int4. */
	for (int i = 0; i < desc->natts; i++)
	{
		if (cfd_type_code(TupleDescAttr(desc, i)->atttypid) != 0)
			return true;
	}
	return false;
}

/*
 * Collects the FIDs of all entries, including those marked dead (searches
 * still compare with them), and of the high key. A half-dead page has no
 * entries of its own.
 */
static void
search_btree_page(Relation index, Page page, Found *found)
{
	TupleDesc	desc = RelationGetDescr(index);
	OffsetNumber last = PageGetMaxOffsetNumber(page);

	if (P_ISDELETED(BTPageGetOpaque(page)) || P_ISHALFDEAD(BTPageGetOpaque(page)))
		return;
	for (OffsetNumber n = FirstOffsetNumber; n <= last; n = OffsetNumberNext(n))
	{
		IndexTuple	entry = (IndexTuple) PageGetItem(page, PageGetItemId(page, n));
		int			natts = BTreeTupleIsPivot(entry) ? BTreeTupleGetNAtts(entry, index) : desc->natts;

		for (int i = 0; i < Min(natts, desc->natts); i++)
		{
			bool		isnull;
			Datum		value;

			if (cfd_type_code(TupleDescAttr(desc, i)->atttypid) == 0)
				continue;
			value = index_getattr(entry, i + 1, desc, &isnull);
			if (!isnull)
				note(found, DatumGetUInt64(value));
		}
	}
}

static void
search_level(const CfdSearch *search, Relation index, uint32 level, Found *found)
{
	Buffer		buffer = CFD_BT_ENDPOINT(index, level, search->snapshot);

	while (BufferIsValid(buffer))
	{
		Page		page = BufferGetPage(buffer);
		BTPageOpaque opaque = BTPageGetOpaque(page);
		BlockNumber next = P_RIGHTMOST(opaque) ? P_NONE : opaque->btpo_next;

		found->count = 0;
		search_btree_page(index, page, found);
		_bt_relbuf(index, buffer);
		cfd_places_hand_over(search, found);
		page_done(search);
		if (next == P_NONE)
			return;
		buffer = ReadBufferExtended(index, MAIN_FORKNUM, next, RBM_NORMAL, search->strategy);
		LockBuffer(buffer, BT_READ);
		_bt_checkpage(index, buffer);
	}
}

/* Gets the level of the root. Returns false if the index is empty. */
static bool
root_level(Relation index, uint32 *level)
{
	Buffer		buffer = _bt_getbuf(index, BTREE_METAPAGE, BT_READ);
	BTMetaPageData *meta = BTPageGetMeta(BufferGetPage(buffer));
	bool		found = meta->btm_root != P_NONE;

	*level = meta->btm_level;
	_bt_relbuf(index, buffer);
	return found;
}

void
cfd_search_index(const CfdSearch *search, Relation index)
{
	Found	   *found;
	uint32		top;

	if (!cfd_index_holds_fids(index))
		return;
	if (index->rd_rel->relam != BTREE_AM_OID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("identifiers in index \"%s\" cannot be found", RelationGetRelationName(index)),
				 errdetail("Of indexes that hold protected columns, only B-trees can be read."),
				 errhint("Drop the index.")));
	found = palloc(sizeof(Found));
	/* The tree may grow meanwhile. */
	for (uint32 level = 0; root_level(index, &top) && level <= top; level++)
		search_level(search, index, level, found);
	pfree(found);
}

/* ---------- statistics ---------- */

/*
 * Whether a row of a catalog counts: the snapshot sees it, or it was inserted
 * later by a transaction that has not aborted. A row that was replaced before
 * the snapshot does not count.
 */
static bool
row_counts(const CfdSearch *search, HeapTuple tuple, Buffer buffer)
{
	TransactionId inserter;
	bool		counts;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	counts = HeapTupleSatisfiesVisibility(tuple, search->snapshot, buffer);
	if (!counts && !HeapTupleHeaderXminInvalid(tuple->t_data) && !HeapTupleHeaderXminFrozen(tuple->t_data))
	{
		inserter = HeapTupleHeaderGetXmin(tuple->t_data);
		counts = TransactionIdIsNormal(inserter) &&
			XidInMVCCSnapshot(inserter, search->snapshot) && !TransactionIdDidAbort(inserter);
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return counts;
}

static void
hand_over_datums(const CfdSearch *search, const Datum *values, int count)
{
	for (int done = 0; done < count;)
	{
		CfdFid		fids[64];
		int			n = 0;

		while (n < lengthof(fids) && done < count)
			fids[n++] = DatumGetUInt64(values[done++]);
		search->sink(search->arg, fids, n);
	}
}

static void
search_statistic_row(const CfdSearch *search, TupleDesc desc, HeapTuple tuple)
{
	for (int k = 0; k < STATISTIC_NUM_SLOTS; k++)
	{
		bool		isnull;
		Datum		datum = heap_getattr(tuple, Anum_pg_statistic_stavalues1 + k, desc, &isnull);
		AnyArrayType *array;
		Datum	   *values;
		int			count;

		if (isnull)
			continue;
		array = (AnyArrayType *) PG_DETOAST_DATUM(datum);
		if (cfd_type_code(AARR_ELEMTYPE(array)) == 0)
			continue;
		deconstruct_array((ArrayType *) array, AARR_ELEMTYPE(array), sizeof(CfdFid), true, TYPALIGN_DOUBLE,
						  &values, NULL, &count);
		hand_over_datums(search, values, count);
	}
}

/* Multivariate most common values. */
static void
search_extended_row(const CfdSearch *search, TupleDesc desc, HeapTuple tuple)
{
	bool		isnull;
	Datum		datum = heap_getattr(tuple, Anum_pg_statistic_ext_data_stxdmcv, desc, &isnull);
	MCVList    *list;

	if (isnull)
		return;
	list = statext_mcv_deserialize(DatumGetByteaP(datum));
	for (uint32 i = 0; i < list->nitems; i++)
	{
		for (int k = 0; k < list->ndimensions; k++)
		{
			if (!list->items[i].isnull[k] && cfd_type_code(list->types[k]) != 0)
				hand_over_datums(search, &list->items[i].values[k], 1);
		}
	}
}

/* The relation of an extended statistics object. */
static Oid
relation_of_extended(Oid statistics)
{
	HeapTuple	tuple = SearchSysCache1(STATEXTOID, ObjectIdGetDatum(statistics));
	Oid			relation = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		relation = ((Form_pg_statistic_ext) GETSTRUCT(tuple))->stxrelid;
		ReleaseSysCache(tuple);
	}
	return relation;
}

static void
search_catalog(const CfdSearch *search, Oid catalog, Oid relation)
{
	Relation	table = table_open(catalog, AccessShareLock);
	TableScanDesc scan = table_beginscan(table, SnapshotAny, 0, NULL);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "confide statistics",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	bool		extended = catalog == StatisticExtDataRelationId;
	HeapTuple	tuple;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Oid			of;

		CHECK_FOR_INTERRUPTS();
		if (!row_counts(search, tuple, ((HeapScanDesc) scan)->rs_cbuf))
			continue;
		of = extended ? ((Form_pg_statistic_ext_data) GETSTRUCT(tuple))->stxoid :
			((Form_pg_statistic) GETSTRUCT(tuple))->starelid;
		if (OidIsValid(relation) && relation != (extended ? relation_of_extended(of) : of))
			continue;
		if (extended)
			search_extended_row(search, RelationGetDescr(table), tuple);
		else
			search_statistic_row(search, RelationGetDescr(table), tuple);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	table_endscan(scan);
	table_close(table, AccessShareLock);
}

void
cfd_search_statistics(const CfdSearch *search, Oid relation)
{
	search_catalog(search, StatisticRelationId, relation);
	search_catalog(search, StatisticExtDataRelationId, relation);
}

bool
cfd_any_inherited_statistics(void)
{
	Relation	table = table_open(StatisticRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	bool		found;

	ScanKeyInit(&key, Anum_pg_statistic_stainherit, BTEqualStrategyNumber, F_BOOLEQ, BoolGetDatum(true));
	scan = systable_beginscan(table, InvalidOid, false, NULL, 1, &key);
	found = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(table, AccessShareLock);
	return found;
}
