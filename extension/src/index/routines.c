/*
 * routines.c
 *	  Wrappers around the index access method of B-trees with protected
 *	  keys, which search before PostgreSQL does.
 *
 * The relcache entry of such an index gets a copy of PostgreSQL's routines in
 * which four are replaced by wrappers. A rebuilt relcache entry lacks them
 * until the next statement or row. PostgreSQL does not replace the routines of
 * an index that is open, and indexes are open while rows are inserted; so the
 * values of expressions are always promoted (index/derived.h).
 *
 * Invariant: as in search.h.
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "index/ahead.h"
#include "order/ranks.h"
#include "index/derived.h"
#include "index/search.h"
#include "session/pins.h"
#include "known/known.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "compat/compat.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/tidbitmap.h"
#include "value/types.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

bool		cfd_enable_index_search = true;

/* ---------- arrays ---------- */

/* Remembers that the row returned last is dead, as btgettuple does. */
static void
note_killed(IndexScanDesc scan)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;

	if (!scan->kill_prior_tuple)
		return;
	if (so->killedItems == NULL)
		so->killedItems = palloc(sizeof(int) * MaxTIDsPerBTreePage);
	if (so->numKilled < MaxTIDsPerBTreePage)
		so->killedItems[so->numKilled++] = so->currPos.itemIndex;
}

/*
 * Returns the next row of a scan with an array condition. btgettuple would
 * advance through the elements by itself and leave no opportunity to search
 * before each descent.
 */
static bool
get_array_tuple(IndexScanDesc scan, ScanDirection direction, bool all)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	bool		forward = ScanDirectionIsForward(direction);
	bool		found;

	scan->xs_recheck = false;
	if (BTScanPosIsValid(so->currPos))
		note_killed(scan);
	else
		CFD_BT_START_ARRAYS(scan, direction);
	do
	{
		if (BTScanPosIsValid(so->currPos))
		{
			cfd_search_before_next(scan, forward);
			found = _bt_next(scan, direction);
		}
		else
		{
			if (forward)
				cfd_ahead_array(scan, all);
			cfd_search_before_first(scan, forward);
			found = _bt_first(scan, direction);
		}
	} while (!found && CFD_BT_ADVANCE_ARRAYS(scan, direction));
	return found;
}

/* Makes the order of the elements of an array condition on a protected column known. */
static void
rank_elements(Relation index, const ScanKeyData *keys, int count)
{
	for (int i = 0; i < count; i++)
	{
		const ScanKeyData *key = &keys[i];
		ArrayType  *array;
		Datum	   *elements;
		bool	   *nulls;
		int			number;
		CfdRanks   *ranks;

		if ((key->sk_flags & (SK_SEARCHARRAY | SK_ISNULL)) != SK_SEARCHARRAY ||
			cfd_type_code(index->rd_opcintype[key->sk_attno - 1]) == 0)
			continue;
		array = DatumGetArrayTypeP(key->sk_argument);
		if (cfd_type_code(ARR_ELEMTYPE(array)) == 0)
			continue;
		deconstruct_array(array, ARR_ELEMTYPE(array), sizeof(CfdFid), true, TYPALIGN_DOUBLE,
						  &elements, &nulls, &number);
		ranks = cfd_ranks_create(CurrentMemoryContext, cfd_type_code(ARR_ELEMTYPE(array)));
		for (int at = 0; at < number; at++)
		{
			if (!nulls[at] && DatumGetUInt64(elements[at]) != 0)
				cfd_ranks_announce(ranks, DatumGetUInt64(elements[at]));
		}
		cfd_ranks_tell(ranks);
		/* Elements of different arrays are never compared with each other. */
		return;
	}
}

static bool
has_array(const ScanKeyData *keys, int count)
{
	for (int i = 0; i < count; i++)
	{
		if ((keys[i].sk_flags & SK_SEARCHARRAY) != 0)
			return true;
	}
	return false;
}

/* PostgreSQL sorts array elements when a scan begins, so rank them before. */
static void
cfd_search_rescan(IndexScanDesc scan, ScanKey keys, int count, ScanKey orders, int order_count)
{
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext own;

	if (!cfd_enable_index_search || keys == NULL || !has_array(keys, count))
	{
		btrescan(scan, keys, count, orders, order_count);
		return;
	}
	own = AllocSetContextCreate(outer, "Confide ranks of an array", ALLOCSET_SMALL_SIZES);
	PG_TRY();
	{
		MemoryContextSwitchTo(own);
		rank_elements(scan->indexRelation, keys, count);
		MemoryContextSwitchTo(outer);
		btrescan(scan, keys, count, orders, order_count);
	}
	PG_FINALLY();
	{
		MemoryContextSwitchTo(outer);
		/* Deleting the context also drops the ranks. */
		MemoryContextDelete(own);
	}
	PG_END_TRY();
}

/* ---------- PostgreSQL's routines ---------- */

/* all: the scan will be read to its end. */
static bool
next_tuple(IndexScanDesc scan, ScanDirection direction, bool all)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	bool		forward = ScanDirectionIsForward(direction);

	if (!cfd_enable_index_search || scan->parallel_scan != NULL)
		return btgettuple(scan, direction);
	if (so->numArrayKeys > 0 && CFD_BT_BY_ELEMENT)
		return get_array_tuple(scan, direction, all);
	if (so->numArrayKeys == 0)
	{
		if (!BTScanPosIsValid(so->currPos))
			cfd_search_before_first(scan, forward);
		else
			cfd_search_before_next(scan, forward);
	}
	return btgettuple(scan, direction);
}

static bool
get_tuple(IndexScanDesc scan, ScanDirection direction)
{
	return next_tuple(scan, direction, false);
}

static int64
get_bitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	int64		count = 0;

	if (!cfd_enable_index_search)
		return btgetbitmap(scan, bitmap);
	cfd_ahead_scan(scan);
	while (next_tuple(scan, ForwardScanDirection, true))
	{
		tbm_add_tuples(bitmap, &scan->xs_heaptid, 1, false);
		count++;
	}
	return count;
}

static bool
insert(Relation index, Datum *values, bool *nulls, ItemPointer tid, Relation heap,
	   IndexUniqueCheck check, bool unchanged, struct IndexInfo *info)
{
	bool		derived = check != UNIQUE_CHECK_EXISTING && cfd_index_derives(index);
	bool		unique;

	if (derived)
	{
		cfd_pin_writer();
		cfd_derived_promote(heap, index, values, nulls, 1);
	}
	if (cfd_enable_index_search)
		cfd_search_before_insert(index, values, nulls, tid, check != UNIQUE_CHECK_NO);
	unique = btinsert(index, values, nulls, tid, heap, check, unchanged, info);
	if (derived)
		cfd_unpin_writer();
	return unique;
}

const ScanKeyData *
cfd_scan_condition(IndexScanDesc scan, AttrNumber column, bool equal, bool below)
{
	const ScanKeyData *keys = CFD_BT_SCAN_KEYS(scan);

	for (int i = 0; i < scan->numberOfKeys; i++)
	{
		const ScanKeyData *key = &keys[i];
		StrategyNumber strategy = key->sk_strategy;

		/* For an array PostgreSQL has set the element by which it descends. */
		if (key->sk_attno != column || (key->sk_flags & ~CFD_BT_ELEMENT) != 0)
			continue;
		if (equal ? strategy == BTEqualStrategyNumber :
			below ? strategy > BTEqualStrategyNumber : strategy < BTEqualStrategyNumber)
			return key;
	}
	return NULL;
}

/* ---------- installation ---------- */

static bool
has_protected_key(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (cfd_type_code(index->rd_opcintype[i]) != 0)
			return true;
	}
	return false;
}

static void
search_index(Relation index)
{
	IndexAmRoutine *routine = index->rd_indam;

	if (index->rd_rel->relam != BTREE_AM_OID || routine->amgettuple != btgettuple || !has_protected_key(index))
		return;
	routine->amrescan = cfd_search_rescan;
	routine->amgettuple = get_tuple;
	routine->amgetbitmap = get_bitmap;
	routine->aminsert = insert;
}

static bool
search_plan(PlanState *plan, void *context)
{
	Relation	index = NULL;

	if (plan == NULL)
		return false;
	switch (nodeTag(plan))
	{
		case T_IndexScanState:
			index = ((IndexScanState *) plan)->iss_RelationDesc;
			cfd_outer_link(plan);
			break;
		case T_IndexOnlyScanState:
			index = ((IndexOnlyScanState *) plan)->ioss_RelationDesc;
			cfd_outer_link(plan);
			break;
		case T_BitmapIndexScanState:
			index = ((BitmapIndexScanState *) plan)->biss_RelationDesc;
			break;
		case T_BitmapOrState:
			cfd_ahead_plan((BitmapOrState *) plan);
			break;
		default:
			break;
	}
	if (index != NULL)
		search_index(index);
	return planstate_tree_walker(plan, search_plan, context);
}

void
cfd_search_plan(PlanState *plan)
{
	if (cfd_enable_index_search && OidIsValid(cfd_access_method()))
		search_plan(plan, NULL);
}

void
cfd_search_indexes(Relation table)
{
	List	   *indexes;
	ListCell   *cell;

	if (!table->rd_rel->relhasindex)
		return;
	indexes = RelationGetIndexList(table);
	foreach(cell, indexes)
	{
		Relation	index = RelationIdGetRelation(lfirst_oid(cell));

		if (!RelationIsValid(index))
			continue;
		if (cfd_enable_index_search || cfd_index_derives(index))
			search_index(index);
		RelationClose(index);
	}
	list_free(indexes);
}
