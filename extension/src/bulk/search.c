/*
 * search.c
 *	  Searches of B-trees by the page: see search.h.
 *
 * The index's routines in this backend's relcache entry are PostgreSQL's own with
 * three of them preceded by a search; an entry that is made anew loses them until
 * the next statement, which costs time only. Pages are read with the locks that
 * PostgreSQL takes, and no lock is held while the keeper is asked.
 *
 * Invariant: as in search.h.
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "bulk/search.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "channel/channel.h"
#include "compat/compat.h"
#include "executor/executor.h"
#include "gc/pins.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/tidbitmap.h"
#include "planner/functions.h"
#include "types/types.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* Both bounds of a range. */
#define WANTED_MAX 2
/* Entries for each wanted value; a power of two, larger than some pages' keys. */
#define ORDERS 4096
/* Pages read for one descent: height, and steps to the right. */
#define PAGES_MAX 32
#define KEYS_MAX (BLCKSZ / 16)

typedef struct Order
{
	CfdFid		key;
	uint32		stamp;			/* of the search that found it */
	int8		order;			/* key compared with the wanted value */
} Order;

typedef struct Wanted
{
	CfdFid		fid;
	uint32		program;		/* comparison of a key with it */
	Oid			test;			/* function of the scan's condition, or 0 */
	StrategyNumber strategy;	/* of the condition */
	uint32		known;			/* orders remembered */
	Order		orders[ORDERS];
} Wanted;

/* What a page holds of the index's first column. */
typedef struct Keys
{
	bool		leaf;
	bool		ignore;
	BlockNumber next;			/* to the right, or P_NONE */
	BlockNumber first_child;
	int			count;			/* keys, in the order of the page; the last may be the high key */
	CfdFid		keys[KEYS_MAX];
	BlockNumber children[KEYS_MAX];
} Keys;

bool		cfd_enable_index_search = true;
bool		cfd_search_active = false;

static Wanted wanted[WANTED_MAX];
static int	wanted_count = 0;
static uint32 stamp = 0;
/* Sweeps of garbage before anything was remembered. */
static uint64 sweeps = 0;
static Keys page;

/* ---------- what is known ---------- */

void
cfd_search_forget(void)
{
	cfd_search_active = false;
	wanted_count = 0;
}

static inline Order *
entry_of(Wanted *value, CfdFid key)
{
	uint32		place = (uint32) ((key * UINT64CONST(0x9E3779B97F4A7C15)) >> 40);

	for (;; place++)
	{
		Order	   *entry = &value->orders[place % ORDERS];

		if (entry->stamp != stamp || entry->key == key)
			return entry;
	}
}

static inline bool
find(Wanted *value, CfdFid key, int *order)
{
	const Order *entry = entry_of(value, key);

	if (entry->stamp != stamp)
		return false;
	*order = entry->order;
	return true;
}

static void
remember(Wanted *value, CfdFid key, int order)
{
	Order	   *entry;

	/* Half the places stay free, so that looking ends. */
	if (value->known >= ORDERS / 2)
		return;
	entry = entry_of(value, key);
	if (entry->stamp != stamp)
		value->known++;
	entry->key = key;
	entry->order = order;
	entry->stamp = stamp;
}

/*
 * A page may be read again after garbage was swept and an identifier on it given to
 * another value: what is remembered of it counts no more.
 */
static inline bool
outdated(void)
{
	return unlikely(cfd_sweeps() != sweeps);
}

bool
cfd_search_find_order(CfdFid key, CfdFid fid, int *order)
{
	if (outdated())
		return false;
	for (int i = 0; i < wanted_count; i++)
	{
		if (wanted[i].fid == fid)
			return find(&wanted[i], key, order);
	}
	return false;
}

bool
cfd_search_find_test(Oid function, CfdFid key, CfdFid fid, bool *holds)
{
	if (outdated())
		return false;
	for (int i = 0; i < wanted_count; i++)
	{
		int			order;

		if (wanted[i].fid != fid || wanted[i].test != function)
			continue;
		if (!find(&wanted[i], key, &order))
			return false;
		switch (wanted[i].strategy)
		{
			case BTLessStrategyNumber:
				*holds = order < 0;
				return true;
			case BTLessEqualStrategyNumber:
				*holds = order <= 0;
				return true;
			case BTEqualStrategyNumber:
				*holds = order == 0;
				return true;
			case BTGreaterEqualStrategyNumber:
				*holds = order >= 0;
				return true;
			case BTGreaterStrategyNumber:
				*holds = order > 0;
				return true;
			default:
				return false;
		}
	}
	return false;
}

static void
forget_orders(void)
{
	sweeps = cfd_sweeps();
	stamp++;
	if (stamp == 0)
	{
		memset(wanted, 0, sizeof(wanted));
		stamp = 1;
		wanted_count = 0;
	}
	for (int i = 0; i < wanted_count; i++)
		wanted[i].known = 0;
}

/* ---------- pages ---------- */

static void
take_key(Relation index, IndexTuple tuple, BlockNumber child)
{
	bool		null;
	Datum		key;

	if (page.count == KEYS_MAX || BTreeTupleGetNAtts(tuple, index) < 1)
		return;
	key = index_getattr(tuple, 1, RelationGetDescr(index), &null);
	if (null)
		return;
	page.keys[page.count] = DatumGetUInt64(key);
	page.children[page.count++] = child;
}

/* Copies a page's keys, and lets go of it. */
static void
read_page(Relation index, Buffer buffer)
{
	Keys	   *to = &page;
	Page		from = BufferGetPage(buffer);
	BTPageOpaque opaque = BTPageGetOpaque(from);
	OffsetNumber last = PageGetMaxOffsetNumber(from);

	to->leaf = P_ISLEAF(opaque);
	to->ignore = P_IGNORE(opaque);
	to->next = opaque->btpo_next;
	to->first_child = P_NONE;
	to->count = 0;
	for (OffsetNumber at = P_FIRSTDATAKEY(opaque); at <= last && !to->ignore; at++)
	{
		IndexTuple	tuple = (IndexTuple) PageGetItem(from, PageGetItemId(from, at));
		BlockNumber child = to->leaf ? P_NONE : BTreeTupleGetDownLink(tuple);

		/* The first child of an inner page has no key: it is below all. */
		if (!to->leaf && at == P_FIRSTDATAKEY(opaque))
			to->first_child = child;
		else
			take_key(index, tuple, child);
	}
	if (!to->ignore && !P_RIGHTMOST(opaque))
		take_key(index, (IndexTuple) PageGetItem(from, PageGetItemId(from, P_HIKEY)), P_NONE);
	_bt_relbuf(index, buffer);
}

/*
 * Asks where a value belongs among the page's keys, and remembers their orders.
 * Gives how many come before it on the page; if `behind_equals`, those that equal
 * it count, too. Less than 0: not known, since a key names nothing any more. We have
 * let go of the page, so VACUUM may have taken that entry away; if it has not,
 * PostgreSQL's own comparison on the page says so.
 */
static int
ask(Relation index, Wanted *value, bool behind_equals)
{
	unsigned char body[CFD_FIXED_SEARCH];
	bool		descending = (index->rd_indoption[0] & INDOPTION_DESC) != 0;
	CfdFid		turned[KEYS_MAX];
	const char *answer;
	uint32		length;
	int			count = page.count;
	int			less;
	int			up_to;

	if (count == 0)
		return 0;
	for (int i = 0; descending && i < count; i++)
		turned[i] = page.keys[count - 1 - i];
	cfd_put32(body, value->program);
	cfd_put32(body + 4, count);
	cfd_put64(body + 8, value->fid);
	answer = cfd_call(CFD_KIND_SEARCH, body, sizeof(body), descending ? turned : page.keys,
					  sizeof(CfdFid) * count, &length);
	if (length != 8)
		cfd_violation("place of a value has the wrong length");
	if (cfd_get32(answer) == CFD_SEARCH_UNKNOWN)
		return -1;
	less = (int) Min(cfd_get32(answer), (uint32) count);
	up_to = (int) Min(cfd_get32(answer + 4), (uint32) count);
	for (int i = 0; i < count; i++)
		remember(value, descending ? turned[i] : page.keys[i], i < less ? -1 : i < up_to ? 0 : 1);
	if (descending)
		return behind_equals ? count - less : count - up_to;
	return behind_equals ? up_to : less;
}

/*
 * Descends to the leaf where a scan for a value begins, or one without a lower
 * bound: at the first leaf, or the last.
 */
static void
descend(Relation index, Wanted *value, bool behind_equals, bool at_end)
{
	Buffer		buffer = CFD_BT_ROOT(index);

	/* An empty index has no root; what `page` holds is of another scan. */
	page.count = 0;
	for (int pages = 0; BufferIsValid(buffer) && pages < PAGES_MAX; pages++)
	{
		BlockNumber child = P_NONE;
		int			before;

		read_page(index, buffer);
		if (page.ignore)
			return;
		before = value != NULL ? ask(index, value, behind_equals) : at_end ? page.count : 0;
		if (before < 0)
			return;
		if (page.next != P_NONE && page.count > 0 && before == page.count)
			child = page.next;	/* beyond the high key */
		else if (page.leaf)
			return;
		else
			child = before > 0 ? page.children[before - 1] : page.first_child;
		if (child == P_NONE)
			return;
		CHECK_FOR_INTERRUPTS();
		buffer = _bt_getbuf(index, child, BT_READ);
	}
	if (BufferIsValid(buffer))
		_bt_relbuf(index, buffer);
}

/* The other bound, on the leaf that `page` holds. */
static void
ask_others(Relation index, const Wanted *asked)
{
	for (int i = 0; i < wanted_count; i++)
	{
		if (&wanted[i] != asked)
			ask(index, &wanted[i], false);
	}
}

/* ---------- scans and insertions ---------- */

static bool
want(CfdFid fid, Oid comparison, Oid test, StrategyNumber strategy)
{
	const CfdFunction *function = cfd_function(comparison);
	Wanted	   *value;

	if (function == NULL || function->call != CFD_CALL_ORDER || fid == 0 || wanted_count == WANTED_MAX)
		return false;
	value = &wanted[wanted_count++];
	value->fid = fid;
	value->program = function->signature;
	value->test = test;
	value->strategy = strategy;
	value->known = 0;
	return true;
}

/* The scan's conditions on the first column, as far as there is room. */
static void
want_keys(IndexScanDesc scan)
{
	Relation	index = scan->indexRelation;

	wanted_count = 0;
	for (int i = 0; i < scan->numberOfKeys; i++)
	{
		ScanKey		key = &scan->keyData[i];
		Oid			type = OidIsValid(key->sk_subtype) ? key->sk_subtype : index->rd_opcintype[0];

		if (key->sk_attno != 1 || key->sk_flags != 0)
			continue;
		want(DatumGetUInt64(key->sk_argument),
			 get_opfamily_proc(index->rd_opfamily[0], index->rd_opcintype[0], type, BTORDER_PROC),
			 key->sk_func.fn_oid, key->sk_strategy);
	}
}

/* By which condition PostgreSQL descends. */
static Wanted *
starting_point(bool ascending)
{
	for (int i = 0; i < wanted_count; i++)
	{
		StrategyNumber strategy = wanted[i].strategy;

		if (strategy == BTEqualStrategyNumber ||
			(ascending ? strategy > BTEqualStrategyNumber : strategy < BTEqualStrategyNumber))
			return &wanted[i];
	}
	return NULL;
}

static void
before_first(IndexScanDesc scan, bool forward)
{
	Relation	index = scan->indexRelation;
	bool		ascending = forward == ((index->rd_indoption[0] & INDOPTION_DESC) == 0);
	Wanted	   *start;
	bool		behind_equals;

	forget_orders();
	want_keys(scan);
	cfd_search_active = wanted_count > 0;
	if (wanted_count == 0)
		return;
	start = starting_point(ascending);
	behind_equals = start != NULL &&
		(forward ? start->strategy == BTGreaterStrategyNumber || start->strategy == BTLessStrategyNumber :
		 start->strategy == BTLessEqualStrategyNumber || start->strategy == BTEqualStrategyNumber ||
		 start->strategy == BTGreaterEqualStrategyNumber);
	descend(index, start, behind_equals, !forward);
	ask_others(index, start);
}

static void
before_next(IndexScanDesc scan, bool forward)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	BlockNumber next;

	if (wanted_count == 0 || (forward ? so->currPos.itemIndex < so->currPos.lastItem || !so->currPos.moreRight :
							  so->currPos.itemIndex > so->currPos.firstItem || !so->currPos.moreLeft))
		return;
	/* To the left PostgreSQL finds its way by itself. */
	next = forward ? so->currPos.nextPage : P_NONE;
	if (next == P_NONE)
		return;
	forget_orders();
	want_keys(scan);
	cfd_search_active = wanted_count > 0;
	if (wanted_count == 0)
		return;
	read_page(scan->indexRelation, _bt_getbuf(scan->indexRelation, next, BT_READ));
	if (!page.ignore)
		ask_others(scan->indexRelation, NULL);
}

static bool
get_tuple(IndexScanDesc scan, ScanDirection direction)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	bool		forward = ScanDirectionIsForward(direction);

	if (cfd_enable_index_search && scan->parallel_scan == NULL && so->numArrayKeys == 0)
	{
		if (!BTScanPosIsValid(so->currPos))
			before_first(scan, forward);
		else
			before_next(scan, forward);
	}
	return btgettuple(scan, direction);
}

static int64
get_bitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	int64		count = 0;

	if (!cfd_enable_index_search)
		return btgetbitmap(scan, bitmap);
	while (get_tuple(scan, ForwardScanDirection))
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
	if (cfd_enable_index_search && !nulls[0])
	{
		Oid			type = index->rd_opcintype[0];

		forget_orders();
		wanted_count = 0;
		cfd_search_active = want(DatumGetUInt64(values[0]),
								 get_opfamily_proc(index->rd_opfamily[0], type, type, BTORDER_PROC),
								 InvalidOid, InvalidStrategy);
		if (cfd_search_active)
			descend(index, &wanted[0], false, false);
	}
	return btinsert(index, values, nulls, tid, heap, check, unchanged, info);
}

/* ---------- installation ---------- */

static void
search_index(Relation index)
{
	IndexAmRoutine *routine = index->rd_indam;

	if (index->rd_rel->relam != BTREE_AM_OID || routine->amgettuple != btgettuple ||
		cfd_type_code(index->rd_opcintype[0]) == 0)
		return;
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
			break;
		case T_IndexOnlyScanState:
			index = ((IndexOnlyScanState *) plan)->ioss_RelationDesc;
			break;
		case T_BitmapIndexScanState:
			index = ((BitmapIndexScanState *) plan)->biss_RelationDesc;
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

	if (!cfd_enable_index_search || !table->rd_rel->relhasindex)
		return;
	indexes = RelationGetIndexList(table);
	foreach(cell, indexes)
	{
		Relation	index = RelationIdGetRelation(lfirst_oid(cell));

		if (!RelationIsValid(index))
			continue;
		search_index(index);
		RelationClose(index);
	}
	list_free(indexes);
}
