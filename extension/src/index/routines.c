/*
 * routines.c
 *	  Wrappers around the index access method of B-trees with protected
 *	  keys, which search before PostgreSQL does.
 *
 * The relcache entry of such an index gets a copy of PostgreSQL's routines in
 * which seven are replaced by wrappers. A rebuilt relcache entry lacks them
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
#include "index/derived.h"
#include "index/elements.h"
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
#include "value/promote.h"
#include "value/types.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

bool		cfd_enable_index_search = true;

/* ---------- PostgreSQL's routines ---------- */

/* all: the scan will be read to its end. */
static bool
next_tuple(IndexScanDesc scan, ScanDirection direction, bool all)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	bool		forward = ScanDirectionIsForward(direction);
	CfdElements *elements = cfd_elements_of(scan);

	if (elements != NULL)
		return cfd_elements_next(elements, direction, all);
	if (!cfd_enable_index_search || scan->parallel_scan != NULL)
		return btgettuple(scan, direction);
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

	if (!cfd_enable_index_search && cfd_elements_of(scan) == NULL)
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
	for (int i = 0; i < scan->numberOfKeys; i++)
	{
		const ScanKeyData *key = &scan->keyData[i];
		StrategyNumber strategy = key->sk_strategy;

		if (key->sk_attno != column || key->sk_flags != 0)
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
	routine->amrescan = cfd_elements_rescan;
	routine->ammarkpos = cfd_elements_mark;
	routine->amrestrpos = cfd_elements_restore;
	routine->amendscan = cfd_elements_end;
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

/* A new index makes the table's columns be loaded anew, and with them `plain_keys`. */
void
cfd_search_indexes(Relation table)
{
	List	   *indexes;
	ListCell   *cell;
	bool		plain = true;

	if (!table->rd_rel->relhasindex || cfd_columns(table)->plain_keys)
		return;
	indexes = RelationGetIndexList(table);
	foreach(cell, indexes)
	{
		Relation	index = RelationIdGetRelation(lfirst_oid(cell));

		if (!RelationIsValid(index) || has_protected_key(index))
			plain = false;
		if (!RelationIsValid(index))
			continue;
		if (cfd_enable_index_search || cfd_index_derives(index))
			search_index(index);
		RelationClose(index);
	}
	list_free(indexes);
	((CfdColumns *) cfd_columns(table))->plain_keys = plain;
}
