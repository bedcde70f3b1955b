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
#include "bulk/ahead.h"
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

/* Conditions that PostgreSQL descends by, and the other bound of a range. */
#define WANTED_MAX 8
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

/* Keys of a page that equal a value, where they are or would be. */
typedef struct Place
{
	int			less;			/* how many come before it */
	int			up_to;			/* how many come before or equal it */
} Place;

/* What a scan looks for in a column of the index. */
typedef struct Wanted
{
	AttrNumber	column;
	bool		descending;
	CfdFid		fid;			/* 0: not protected */
	uint32		program;		/* comparison of a key with it */
	Datum		plain;
	Oid			test;			/* function of the scan's condition, or 0 */
	StrategyNumber strategy;	/* of the condition */
	Place		place;			/* on the page, among those that equal the values before it */
	uint32		known;			/* orders remembered */
	Order		orders[ORDERS];
} Wanted;

/* A copy of a page; no lock is held while it is looked at. */
typedef struct Keys
{
	bool		leaf;
	bool		ignore;
	BlockNumber next;			/* to the right, or P_NONE */
	OffsetNumber first;			/* item of the first key */
	int			items;			/* keys without the high key */
	int			count;			/* keys in the order of the page; the last may be the high key */
	PGAlignedBlock image;
} Keys;

bool		cfd_enable_index_search = true;
bool		cfd_search_active = false;

/*
 * The first "starts" of them are what PostgreSQL descends by, column by column, then
 * perhaps the other bound of the last column's range.
 */
static Wanted wanted[WANTED_MAX];
static int	wanted_count = 0;
static int	starts = 0;
static uint32 stamp = 0;
/* Sweeps of garbage before anything was remembered. */
static uint64 sweeps = 0;
static Keys page;

/* ---------- what is known ---------- */

void
cfd_search_forget(void)
{
	cfd_search_active = false;
	wanted_count = starts = 0;
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
		if (wanted[i].fid == fid && find(&wanted[i], key, order))
			return true;
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
			continue;
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

/* Forgets all orders, and what was wanted. */
static void
forget_orders(void)
{
	sweeps = cfd_sweeps();
	stamp++;
	if (stamp == 0)
	{
		memset(wanted, 0, sizeof(wanted));
		stamp = 1;
	}
	wanted_count = starts = 0;
	cfd_search_active = false;
}

/* ---------- pages ---------- */

/* Copies a page, and lets go of it. */
static void
read_page(Relation index, Buffer buffer)
{
	Page		from = BufferGetPage(buffer);
	BTPageOpaque opaque;
	int			last;

	memcpy(page.image.data, from, BLCKSZ);
	_bt_relbuf(index, buffer);
	opaque = BTPageGetOpaque(page.image.data);
	last = PageGetMaxOffsetNumber(page.image.data);
	page.leaf = P_ISLEAF(opaque);
	page.ignore = P_IGNORE(opaque);
	page.next = opaque->btpo_next;
	/* The first child of an inner page has no key: it is below all. */
	page.first = P_FIRSTDATAKEY(opaque) + (page.leaf ? 0 : 1);
	page.items = Min(Max(last - page.first + 1, 0), KEYS_MAX - 1);
	page.count = page.items + (P_RIGHTMOST(opaque) ? 0 : 1);
}

static IndexTuple
item(OffsetNumber at)
{
	return (IndexTuple) PageGetItem(page.image.data, PageGetItemId(page.image.data, at));
}

/* A column of a key; false: cut off (below all values), or NULL. */
static inline bool
key_column(Relation index, int number, AttrNumber column, Datum *key, bool *below)
{
	IndexTuple	tuple = item(number < page.items ? page.first + number : P_HIKEY);
	bool		null;

	*below = true;
	if (BTreeTupleGetNAtts(tuple, index) < column)
		return false;
	*key = index_getattr(tuple, column, RelationGetDescr(index), &null);
	*below = (index->rd_indoption[column - 1] & INDOPTION_NULLS_FIRST) != 0;
	return !null;
}

static CfdFid
key_fid(Relation index, int number, AttrNumber column)
{
	Datum		key;
	bool		below;

	if (key_column(index, number, column, &key, &below))
		return DatumGetUInt64(key);
	return below ? CFD_SEARCH_BELOW : CFD_SEARCH_ABOVE;
}

/* A key of the page compared with a value that is not protected, in the index's order. */
static int
compare_plain(Relation index, int number, const Wanted *value)
{
	FmgrInfo   *order = index_getprocinfo(index, value->column, BTORDER_PROC);
	Datum		key;
	bool		below;
	int			result;

	if (!key_column(index, number, value->column, &key, &below))
		return below ? -1 : 1;
	result = DatumGetInt32(FunctionCall2Coll(order, index->rd_indcollation[value->column - 1],
											 key, value->plain));
	return value->descending ? -result : result;
}

static void
place_plain(Relation index, Wanted *value, Place within)
{
	Place		place = {within.less, within.less};

	for (int limit = 0; limit <= 1; limit++)
	{
		int			low = place.less;
		int			high = within.up_to;

		while (low < high)
		{
			int			middle = low + (high - low) / 2;

			if (compare_plain(index, middle, value) < limit)
				low = middle + 1;
			else
				high = middle;
		}
		if (limit == 0)
			place.less = low;
		place.up_to = low;
	}
	value->place = place;
}

/* The other bound of a range whose first bound is before it. */
static inline bool
is_beside(int number)
{
	return number > 0 && wanted[number].column == wanted[number - 1].column;
}

/* Whether all places of values among keys of one column are known already. */
static bool
place_from_ahead(int first, int end, Place within, const CfdFid *keys, const CfdFid *keys_end)
{
	int			rows = within.up_to - within.less;

	if (keys_end - keys != rows)
		return false;
	for (int i = first; i < end; i++)
	{
		uint32		less;
		uint32		up_to;

		if (!cfd_ahead_find(keys, rows, wanted[i].fid, wanted[i].program, &less, &up_to))
			return false;
		wanted[i].place = (Place) {within.less + less, within.less + up_to};
	}
	return true;
}

/*
 * Asks the keeper where protected values from "first" up to "end" belong among keys of
 * the page. False: not known, since a key names nothing any more. We have let go of the
 * page, so VACUUM may have taken that entry away; if it has not, PostgreSQL's own comparison
 * on the page says so.
 */
static bool
place_protected(Relation index, int first, int end, Place within)
{
	static CfdFid keys[WANTED_MAX * KEYS_MAX];
	unsigned char body[CFD_FIXED_SEARCH + WANTED_MAX * 16];
	uint32		rows = within.up_to - within.less;
	uint32		length;
	const char *answer;
	unsigned char *value = body + CFD_FIXED_SEARCH;
	CfdFid	   *to = keys;

	cfd_put32(body, end - first);
	cfd_put32(body + 4, rows);
	for (int i = first; i < end; i++, value += 16)
	{
		cfd_put32(value, wanted[i].program);
		cfd_put32(value + 4, (wanted[i].descending ? CFD_SEARCH_DESCENDING : 0) |
				  (is_beside(i) ? CFD_SEARCH_BESIDE : 0));
		cfd_put64(value + 8, wanted[i].fid);
		for (int key = within.less; key < within.up_to && !is_beside(i); key++)
			*to++ = key_fid(index, key, wanted[i].column);
	}
	if (place_from_ahead(first, end, within, keys, to))
		return true;
	answer = cfd_call(CFD_KIND_SEARCH, body, value - body, keys, (char *) to - (char *) keys, &length);
	if (length != 8 * (end - first))
		cfd_violation("place of a value has the wrong length");
	for (int i = first; i < end; i++, answer += 8)
	{
		uint32		less = cfd_get32(answer);
		uint32		up_to = cfd_get32(answer + 4);

		if (less == CFD_SEARCH_UNKNOWN)
			return false;
		if (less > up_to || up_to > rows)
			cfd_violation("impossible place of a value");
		wanted[i].place = (Place) {within.less + less, within.less + up_to};
	}
	return true;
}

/* Places the wanted values on the page: column by column, protected neighbours at once. */
static bool
place_values(Relation index, int count)
{
	Place		within = {0, page.count};

	for (int i = 0; i < count;)
	{
		int			end = i + 1;

		if (within.less == within.up_to)
			wanted[i].place = within;
		else if (wanted[i].fid == 0)
			place_plain(index, &wanted[i], within);
		else
		{
			while (end < count && wanted[end].fid != 0)
				end++;
			if (!place_protected(index, i, end, within))
				return false;
		}
		within = wanted[end - 1].place;
		i = end;
	}
	return true;
}

/* ---------- what PostgreSQL will compare ---------- */

/* Remembers how a key of the page compares, column by column as far as columns are equal. */
static void
remember_key(Relation index, int number)
{
	Place		within = {0, page.count};

	for (int i = 0; i < wanted_count; i++)
	{
		Wanted	   *value = &wanted[i];
		int			order = number < value->place.less ? -1 : number < value->place.up_to ? 0 : 1;

		if (number < within.less || number >= within.up_to)
			return;
		if (value->fid != 0)
		{
			CfdFid		key = key_fid(index, number, value->column);

			if (key != CFD_SEARCH_BELOW && key != CFD_SEARCH_ABOVE)
				remember(value, key, value->descending ? -order : order);
		}
		if (i + 1 < wanted_count && !is_beside(i + 1))
			within = value->place;
	}
}

static void
remember_keys(Relation index, int first, int last)
{
	for (int i = Max(first, 0); i <= Min(last, page.count - 1); i++)
		remember_key(index, i);
}

/* Remembers what PostgreSQL's binary search for the key after the first "before" looks at. */
static void
remember_path(Relation index, int before)
{
	int			shift = page.leaf ? 0 : 1;
	int			low = 0;
	int			high = page.items + shift;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (middle >= shift)
			remember_key(index, middle - shift);
		if (middle - shift < before)
			low = middle + 1;
		else
			high = middle;
	}
	if (page.count > page.items)
		remember_key(index, page.items);
}

/*
 * Descends to the leaf where PostgreSQL will, by the first "starts" wanted values or,
 * without any, to the first leaf, or the last; remembers what will be compared on the
 * way. False: this leaf is not known.
 */
static bool
descend(Relation index, bool behind_equals, bool at_end)
{
	Buffer		buffer = CFD_BT_ROOT(index);

	for (int pages = 0; BufferIsValid(buffer) && pages < PAGES_MAX; pages++)
	{
		BlockNumber child;
		int			before;

		read_page(index, buffer);
		if (page.ignore)
			return false;
		before = at_end ? page.count : 0;
		if (starts > 0)
		{
			if (!place_values(index, page.leaf ? wanted_count : starts))
				return false;
			before = behind_equals ? wanted[starts - 1].place.up_to : wanted[starts - 1].place.less;
		}
		if (page.next != P_NONE && page.count > 0 && before == page.count)
			child = page.next;	/* beyond the high key */
		else if (page.leaf)
			return starts > 0 || place_values(index, wanted_count);
		else
			child = BTreeTupleGetDownLink(item(page.first - 1 + Min(before, page.items)));
		if (starts > 0)
		{
			/* The other bound is not placed yet. */
			int			all = wanted_count;

			wanted_count = starts;
			remember_path(index, before);
			wanted_count = all;
		}
		CHECK_FOR_INTERRUPTS();
		buffer = _bt_getbuf(index, child, BT_READ);
	}
	/* The index is empty, or something is wrong with it. */
	if (BufferIsValid(buffer))
		_bt_relbuf(index, buffer);
	return false;
}

/* ---------- scans and insertions ---------- */

/* Adds a value; false if there is no room or no way to compare it. */
static bool
want(Relation index, AttrNumber column, Datum argument, Oid type, Oid test, StrategyNumber strategy)
{
	Oid			own = index->rd_opcintype[column - 1];
	Wanted	   *value = &wanted[wanted_count];

	if (wanted_count == WANTED_MAX)
		return false;
	value->fid = 0;
	if (cfd_type_code(own) != 0)
	{
		const CfdFunction *function =
			cfd_function(get_opfamily_proc(index->rd_opfamily[column - 1], own, type, BTORDER_PROC));

		if (function == NULL || function->call != CFD_CALL_ORDER || DatumGetUInt64(argument) == 0)
			return false;
		value->fid = DatumGetUInt64(argument);
		value->program = function->signature;
		cfd_search_active = true;
	}
	else if (type != own)
		return false;
	value->column = column;
	value->descending = (index->rd_indoption[column - 1] & INDOPTION_DESC) != 0;
	value->plain = argument;
	value->test = test;
	value->strategy = strategy;
	value->known = 0;
	wanted_count++;
	return true;
}

static bool
want_key(Relation index, const ScanKeyData *key)
{
	Oid			type = OidIsValid(key->sk_subtype) ? key->sk_subtype : index->rd_opcintype[key->sk_attno - 1];

	return want(index, key->sk_attno, key->sk_argument, type, key->sk_func.fn_oid, key->sk_strategy);
}

/* The scan's condition on a column: equality, or a bound below or above. */
static const ScanKeyData *
condition(IndexScanDesc scan, AttrNumber column, bool equal, bool below)
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

/*
 * The conditions by which PostgreSQL descends: equalities on the first columns, and a
 * bound on the next one; then the other bound of that.
 */
static void
want_keys(IndexScanDesc scan, bool forward)
{
	Relation	index = scan->indexRelation;

	forget_orders();
	for (AttrNumber column = 1; column <= IndexRelationGetNumberOfKeyAttributes(index); column++)
	{
		bool		ascending = forward == ((index->rd_indoption[column - 1] & INDOPTION_DESC) == 0);
		const ScanKeyData *key = condition(scan, column, true, false);

		if (key != NULL)
		{
			if (!want_key(index, key))
				return;
			starts = wanted_count;
			continue;
		}
		key = condition(scan, column, false, ascending);
		if (key != NULL && want_key(index, key))
			starts = wanted_count;
		key = condition(scan, column, false, !ascending);
		if (key != NULL && cfd_type_code(index->rd_opcintype[column - 1]) != 0)
			want_key(index, key);
		return;
	}
}

/* Whether PostgreSQL descends to the key behind those that equal what is wanted. */
static bool
is_behind_equals(bool forward)
{
	StrategyNumber strategy;

	if (starts == 0)
		return false;
	strategy = wanted[starts - 1].strategy;
	return forward ? strategy == BTGreaterStrategyNumber || strategy == BTLessStrategyNumber :
		strategy == BTLessEqualStrategyNumber || strategy == BTEqualStrategyNumber ||
		strategy == BTGreaterEqualStrategyNumber;
}

/* Remembers the keys of a leaf from which rows are read, from "begin" on. */
static void
remember_rows(Relation index, bool forward, int begin)
{
	Place		end = {0, page.count};

	if (wanted_count > starts || (starts > 0 && wanted[starts - 1].strategy == BTEqualStrategyNumber))
		end = wanted[wanted_count - 1].place;
	if (forward)
	{
		remember_keys(index, begin - 1, end.up_to);
		/* PostgreSQL looks at the high key, too, if all rows before it are wanted. */
		if (end.up_to >= page.items)
			remember_keys(index, page.items, page.items);
	}
	else
		remember_keys(index, end.less - 1, begin);
}

static void
before_first(IndexScanDesc scan, bool forward)
{
	Relation	index = scan->indexRelation;
	bool		behind_equals;
	int			begin;

	want_keys(scan, forward);
	if (!cfd_search_active)
		return;
	behind_equals = is_behind_equals(forward);
	if (!descend(index, behind_equals, !forward))
		return;
	if (starts > 0)
		begin = behind_equals ? wanted[starts - 1].place.up_to : wanted[starts - 1].place.less;
	else
		begin = forward ? 0 : page.count;
	if (starts > 0)
		remember_path(index, begin);
	remember_rows(index, forward, begin);
}

static void
before_next(IndexScanDesc scan, bool forward)
{
	Relation	index = scan->indexRelation;
	BTScanOpaque so = (BTScanOpaque) scan->opaque;

	/* To the left PostgreSQL finds its way by itself. */
	if (!forward || so->currPos.itemIndex < so->currPos.lastItem || !so->currPos.moreRight ||
		so->currPos.nextPage == P_NONE)
		return;
	want_keys(scan, forward);
	if (!cfd_search_active)
		return;
	read_page(index, _bt_getbuf(index, so->currPos.nextPage, BT_READ));
	if (!page.ignore && place_values(index, wanted_count))
		remember_rows(index, true, 0);
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
	cfd_ahead_scan(scan);
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
	if (cfd_enable_index_search)
	{
		forget_orders();
		for (AttrNumber column = 1; column <= IndexRelationGetNumberOfKeyAttributes(index); column++)
		{
			if (nulls[column - 1] ||
				!want(index, column, values[column - 1], index->rd_opcintype[column - 1],
					  InvalidOid, InvalidStrategy))
				break;
		}
		starts = wanted_count;
		if (cfd_search_active && descend(index, false, false))
		{
			Place		place = wanted[starts - 1].place;

			/* Among equals the row's own place decides; the first key, if it may be the last page. */
			remember_path(index, place.less);
			remember_path(index, place.up_to);
			remember_keys(index, place.less - 1, place.up_to);
			remember_keys(index, 0, 0);
		}
	}
	return btinsert(index, values, nulls, tid, heap, check, unchanged, info);
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
