/*
 * search.c
 *	  Searches B-trees one page at a time: see search.h.
 *
 * Pages are read with PostgreSQL's locks; none is held during a request to the keeper.
 *
 * Invariant: as in search.h.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "index/arms.h"
#include "index/compared.h"
#include "index/pages.h"
#include "index/remembered.h"
#include "index/search.h"
#include "known/known.h"
#include "session/channel.h"
#include "compat/compat.h"
#include "miscadmin.h"
#include "program/registry.h"
#include "value/types.h"
#include "utils/lsyscache.h"

/* Maximum number of conditions for the descent, including the other bound of a range. */
#define WANTED_MAX 8
/* Maximum number of requests for one descent: levels, and steps to the right. */
#define STEPS_MAX 32

/*
 * PostgreSQL descends by the first "starts" of them, column by column; they may be followed by the
 * other bound of the last column's range.
 */
static CfdWanted wanted[WANTED_MAX];
static int	wanted_count = 0;
static int	starts = 0;
/* Whether any of them is protected. */
static bool searching = false;
/* Position of the row to be inserted, by which PostgreSQL descends among equal keys; NULL: none. */
static ItemPointer tie = NULL;
static CfdPages pages;
/* The page of these that is examined. */
static CfdKeys *page = &pages.page[0];
/* The same, or a page that an arm has come to. */
static CfdCompared compared;

/* Starts another search: discards the known facts of the last one. */
static void
begin_search(void)
{
	cfd_known_begin(&cfd_known[CFD_SCOPE_SEARCH]);
	wanted_count = starts = 0;
	searching = false;
	tie = NULL;
}

/* ---------- pages ---------- */

static void
place_plain(Relation index, CfdWanted *value, CfdPlace within)
{
	value->found = within;
	cfd_pages_place_plain(&pages, index, value->column, value->plain, &value->found.less, &value->found.up_to);
}

/*
 * Whether the places of all values are already known facts (index/insertion.h), for each column among
 * the keys that equal the previous values.
 */
static bool
place_known(int first, int end, CfdPlace within, const CfdFid *keys)
{
	int			rows = within.up_to - within.less;
	CfdPlace	among = {0, rows};
	CfdPlace	found = among;

	if (cfd_known_kinds[CFD_FACT_PLACE] == 0)
		return false;
	for (int i = first; i < end; i++)
	{
		uint32		less = 0;
		uint32		up_to = 0;

		if (i > first && !cfd_is_beside(wanted, i))
		{
			keys += rows;
			among = found;
		}
		/* Known places are in ascending order. */
		if (wanted[i].descending ||
			(among.less < among.up_to &&
			 !cfd_known_place(wanted[i].program, wanted[i].fid, keys + among.less, among.up_to - among.less,
							  &less, &up_to)))
			return false;
		found = (CfdPlace) {among.less + less, among.less + up_to};
		wanted[i].found = (CfdPlace) {within.less + found.less, within.less + found.up_to};
	}
	return true;
}

/*
 * Asks the keeper for the places of the protected values from "first" up to "end" among the keys.
 * Returns false if they are not known because a key no longer exists: the page is not locked, so
 * VACUUM may have removed its entry. If VACUUM has not, PostgreSQL's own comparison on the page
 * reports the error.
 */
static bool
place_protected(Relation index, int first, int end, CfdPlace within)
{
	static CfdFid keys[WANTED_MAX * lengthof(pages.key)];
	CfdSearchBody body;
	uint32		rows = within.up_to - within.less;
	uint32		length;
	const char *answer;
	CfdReadSearchAnswer read;
	CfdFid	   *to = keys;

	body.fixed = (CfdWireSearch) {.values = end - first,.keys = rows};
	for (int i = first; i < end; i++)
	{
		CfdWireSought *sought = &body.sought[i - first];

		sought->program = wanted[i].program;
		sought->flags = (wanted[i].descending ? CFD_SEARCH_DESCENDING : 0) | (cfd_is_beside(wanted, i) ? CFD_SEARCH_BESIDE : 0);
		sought->fid = wanted[i].fid;
		for (int key = within.less; key < within.up_to && !cfd_is_beside(wanted, i); key++)
			*to++ = cfd_key_fid(index, pages.key[key], wanted[i].column);
	}
	if (place_known(first, end, within, keys))
		return true;
	answer = cfd_call(CFD_KIND_SEARCH, &body, offsetof(CfdSearchBody, sought[end - first]), keys, (char *) to - (char *) keys, &length);
	CFD_DECODE(search_answer, answer, length, &read);
	if (read.places_count != (uint64) (end - first))
		cfd_violation("places of other values");
	for (int i = first; i < end; i++)
	{
		uint32		less = read.places[i - first].less;
		uint32		up_to = read.places[i - first].up_to;

		if (less == CFD_SEARCH_UNKNOWN)
			return false;
		if (less > up_to || up_to > rows)
			cfd_violation("impossible place of a value");
		wanted[i].found = (CfdPlace) {within.less + less, within.less + up_to};
	}
	return true;
}

/* The same for all protected values on the first page, which the keeper remembers from now on. */
static bool
place_remembered(Relation index, CfdDescent *descent, CfdPlace within)
{
	const CfdWirePlace *places;

	descent->less = within.less;
	descent->up_to = within.up_to;
	places = cfd_descent_places(descent, index, &pages.page[0]);
	if (places == NULL)
		return place_protected(index, descent->plain, starts, within);
	for (int i = descent->plain; i < starts; i++, places++)
	{
		if (places->less == CFD_SEARCH_UNKNOWN)
			return false;
		wanted[i].found = (CfdPlace) {places->less, places->up_to};
	}
	return true;
}

/* Places all values among the keys: column by column, adjacent protected ones together, perhaps with a descent. */
static bool
place_values(Relation index, int count, CfdDescent *descent)
{
	CfdPlace	within = {0, pages.keys};

	for (int i = 0; i < count;)
	{
		int			end = i + 1;

		if (within.less == within.up_to)
			wanted[i].found = within;
		else if (wanted[i].fid == 0)
			place_plain(index, &wanted[i], within);
		else
		{
			while (end < count && wanted[end].fid != 0)
				end++;
			if (descent != NULL ? !place_remembered(index, descent, within) : !place_protected(index, i, end, within))
				return false;
		}
		within = wanted[end - 1].found;
		i = end;
	}
	return true;
}

/* Makes a page the current one, and finds the values' places on it from those among all keys. */
static void
cfd_search_look_at(Relation index, CfdKeys *at, int count)
{
	page = at;
	compared = (CfdCompared) {
		.wanted = wanted,
		.items = at->items,
		.count = at->count,
		.leaf = at->level == 0,
		.page = at,
		.index = index
	};
	for (int i = 0; i < count; i++)
		wanted[i].place = (CfdPlace) {cfd_page_place(page, wanted[i].found.less),
		cfd_page_place(page, wanted[i].found.up_to)};
}

/* ---------- descents ---------- */

/* Number of keys on the page before the position from which PostgreSQL continues. */
static int
place_of_descent(Relation index, bool behind_equals, bool at_end)
{
	if (starts == 0)
		return at_end ? page->count : 0;
	if (behind_equals)
		return wanted[starts - 1].place.up_to;
	return cfd_page_among_equals(page, index, wanted[starts - 1].place.less, wanted[starts - 1].place.up_to, starts, tie);
}

/*
 * Descends from the first page as far as pages were read, and stores the comparisons on the way.
 * Returns the next page, or P_NONE at the leaf.
 */
static BlockNumber
go_down(Relation index, bool behind_equals, bool at_end, int placed)
{
	CfdKeys    *at = &pages.page[0];
	BlockNumber next = P_NONE;

	for (int i = 0; at != NULL && i < CFD_PAGES_MAX; i++, at = cfd_pages_find(&pages, next))
	{
		int			before;

		cfd_search_look_at(index, at, placed);
		before = place_of_descent(index, behind_equals, at_end);
		cfd_pages_reached(index, page);
		if (page->next != P_NONE && page->count > 0 && before == page->count)
			next = page->next;	/* beyond the high key */
		else if (page->level == 0)
			return P_NONE;
		else
			next = cfd_page_child(page, before);
		if (starts > 0)
			cfd_compared_path(&compared, before, starts);
	}
	return next;
}

/* Starts a descent, if the values are for the index's first columns, plain ones before protected ones. */
static bool
begin_descent(CfdDescent *descent)
{
	int			plain = 0;

	for (int i = 0; i < wanted_count; i++)
	{
		if (wanted[i].column != i + 1 || (wanted[i].fid == 0 && plain != i))
			return false;
		plain += wanted[i].fid == 0;
	}
	if (starts == plain || starts != wanted_count || cfd_known_kinds[CFD_FACT_PLACE] != 0 || !cfd_descent_pays())
		return false;
	cfd_descent_begin(descent, plain, starts - plain);
	for (int i = plain; i < starts; i++)
		descent->sought[i - plain] = (CfdWireSought) {.program = wanted[i].program,
			.flags = wanted[i].descending ? CFD_SEARCH_DESCENDING : 0,.fid = wanted[i].fid};
	return true;
}

/*
 * Descends to the leaf to which PostgreSQL will descend, by the first "starts" values, or, if there
 * are none, to the first or last leaf. Stores the comparisons on the way. Returns false if the
 * places on this leaf are not known.
 */
static bool
cfd_search_descend(Relation index, bool behind_equals, bool at_end)
{
	Buffer		buffer = CFD_BT_ROOT(index);
	CfdDescent	descent;
	bool		remembers = begin_descent(&descent);

	for (int steps = 0; BufferIsValid(buffer) && steps < STEPS_MAX; steps++)
	{
		BlockNumber next;
		int			placed = 0;
		bool		named;

		cfd_pages_read(&pages, index, buffer, starts > 0);
		if (pages.page[0].ignore)
			return false;
		if (starts > 0)
		{
			/* The other bound matters only on a leaf. */
			placed = pages.page[pages.pages - 1].level == 0 ? wanted_count : starts;
			named = remembers && !cfd_pages_guess_other(&pages, index);
			if (named)
				cfd_pages_keep_first(&pages);
			if (!place_values(index, placed, named ? &descent : NULL))
				return false;
		}
		next = go_down(index, behind_equals, at_end, placed);
		if (remembers)
			cfd_descent_step(&descent, &pages.page[0], wanted[starts - 1].place.less, wanted[starts - 1].place.up_to);
		if (next == P_NONE)
		{
			if (starts > 0)
				return true;
			if (!place_values(index, wanted_count, NULL))
				return false;
			cfd_search_look_at(index, page, wanted_count);
			return true;
		}
		CHECK_FOR_INTERRUPTS();
		buffer = _bt_getbuf(index, next, BT_READ);
	}
	/* The index is empty or damaged. */
	if (BufferIsValid(buffer))
		_bt_relbuf(index, buffer);
	return false;
}

/* ---------- scans and insertions ---------- */

/* Adds a value; returns false if there is no room or it cannot be compared. */
static bool
want(Relation index, AttrNumber column, Datum argument, Oid type, StrategyNumber strategy)
{
	Oid			own = index->rd_opcintype[column - 1];
	CfdWanted  *value = &wanted[wanted_count];

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
		searching = true;
	}
	else if (type != own)
		return false;
	value->column = column;
	value->descending = (index->rd_indoption[column - 1] & INDOPTION_DESC) != 0;
	value->plain = argument;
	value->strategy = strategy;
	wanted_count++;
	return true;
}

static bool
want_key(Relation index, const ScanKeyData *key)
{
	Oid			type = OidIsValid(key->sk_subtype) ? key->sk_subtype : index->rd_opcintype[key->sk_attno - 1];

	return want(index, key->sk_attno, key->sk_argument, type, key->sk_strategy);
}

/*
 * Collects the conditions by which PostgreSQL descends: equalities on the first columns and a bound
 * on the next one. The other bound of that column follows.
 */
static void
want_keys(IndexScanDesc scan, bool forward)
{
	Relation	index = scan->indexRelation;

	begin_search();
	for (AttrNumber column = 1; column <= IndexRelationGetNumberOfKeyAttributes(index); column++)
	{
		bool		ascending = forward == ((index->rd_indoption[column - 1] & INDOPTION_DESC) == 0);
		const ScanKeyData *key = cfd_scan_condition(scan, column, true, false);

		if (key != NULL)
		{
			if (!want_key(index, key))
				return;
			starts = wanted_count;
			continue;
		}
		key = cfd_scan_condition(scan, column, false, ascending);
		if (key != NULL && want_key(index, key))
			starts = wanted_count;
		key = cfd_scan_condition(scan, column, false, !ascending);
		if (key != NULL && cfd_type_code(index->rd_opcintype[column - 1]) != 0)
			want_key(index, key);
		return;
	}
}

/* Whether PostgreSQL descends to the first key after those that are equal. */
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

/* Stores the comparisons with the keys of a leaf from "begin" on, whose rows will be read. */
static void
remember_rows(bool forward, int begin)
{
	CfdPlace	end = {0, compared.count};

	if (wanted_count > starts || (starts > 0 && wanted[starts - 1].strategy == BTEqualStrategyNumber))
		end = wanted[wanted_count - 1].place;
	if (forward)
	{
		cfd_compared_keys(&compared, begin - 1, end.up_to, wanted_count);
		/* If all rows before it qualify, PostgreSQL compares the high key, too. */
		if (end.up_to >= compared.items)
			cfd_compared_keys(&compared, compared.items, compared.items, wanted_count);
	}
	else
		cfd_compared_keys(&compared, end.less - 1, begin, wanted_count);
}

/* The first page that an arm with these values has come to (index/ahead.h); NULL: there is no such arm. */
static const CfdArmPage *
pages_of_arm(IndexScanDesc scan, bool behind_equals)
{
	CfdArms    *group = cfd_arms_of(scan);

	return group == NULL ? NULL : cfd_arms_pages(group, wanted, starts, wanted_count, behind_equals);
}

/* Stores the comparisons of a descent that an arm has made already. */
static void
follow_arm(const CfdArmPage *at, bool forward, bool behind_equals)
{
	for (; at != NULL; at = at->next)
	{
		CfdPlace	found;
		int			begin;

		cfd_arms_compared(at, wanted, wanted_count, &compared);
		found = wanted[starts - 1].place;
		begin = behind_equals ? found.up_to : found.less;
		cfd_compared_path(&compared, begin, compared.leaf ? wanted_count : starts);
		if (!compared.leaf)
		{
			/* A key that has lost its further columns equals the value, but is below its rows. */
			if (begin < found.up_to)
				cfd_compared_path(&compared, begin + 1, starts);
			continue;
		}
		remember_rows(forward, begin);
		if (begin < compared.items)
			return;
	}
}

void
cfd_search_before_first(IndexScanDesc scan, bool forward)
{
	Relation	index = scan->indexRelation;
	const CfdArmPage *arm;
	bool		behind_equals;
	int			begin;

	want_keys(scan, forward);
	if (!searching)
		return;
	behind_equals = is_behind_equals(forward);
	arm = pages_of_arm(scan, behind_equals);
	if (arm != NULL)
	{
		follow_arm(arm, forward, behind_equals);
		return;
	}
	if (!cfd_search_descend(index, behind_equals, !forward))
		return;
	begin = place_of_descent(index, behind_equals, !forward);
	if (starts > 0)
		cfd_compared_path(&compared, begin, wanted_count);
	remember_rows(forward, begin);
}

void
cfd_search_before_next(IndexScanDesc scan, bool forward)
{
	Relation	index = scan->indexRelation;
	BTScanOpaque so = (BTScanOpaque) scan->opaque;

	/* When it moves left, PostgreSQL reads the page by itself. */
	if (!forward || so->currPos.itemIndex < so->currPos.lastItem || !so->currPos.moreRight ||
		so->currPos.nextPage == P_NONE)
		return;
	want_keys(scan, forward);
	if (!searching)
		return;
	for (const CfdArmPage *at = pages_of_arm(scan, is_behind_equals(forward)); at != NULL; at = at->next)
	{
		if (at->block != so->currPos.nextPage)
			continue;
		cfd_arms_compared(at, wanted, wanted_count, &compared);
		remember_rows(true, 0);
		return;
	}
	cfd_pages_read(&pages, index, _bt_getbuf(index, so->currPos.nextPage, BT_READ), false);
	page = &pages.page[0];
	if (page->ignore || !place_values(index, wanted_count, NULL))
		return;
	cfd_search_look_at(index, page, wanted_count);
	remember_rows(true, 0);
}

void
cfd_search_before_insert(Relation index, const Datum *values, const bool *nulls, ItemPointer row, bool unique)
{
	CfdPlace	place;

	begin_search();
	tie = unique ? NULL : row;
	for (AttrNumber column = 1; column <= IndexRelationGetNumberOfKeyAttributes(index); column++)
	{
		if (nulls[column - 1] ||
			!want(index, column, values[column - 1], index->rd_opcintype[column - 1], InvalidStrategy))
			break;
	}
	starts = wanted_count;
	if (!searching || !cfd_search_descend(index, false, false))
		return;
	place = wanted[starts - 1].place;
	/* Among equal keys the row's position decides. The first key matters if this may be the last page. */
	cfd_compared_path(&compared, place.less, wanted_count);
	cfd_compared_path(&compared, place.up_to, wanted_count);
	cfd_compared_keys(&compared, place.less - 1, place.up_to, wanted_count);
	if (unique && place.less < place.up_to)
		cfd_compared_again(&compared, place, cfd_page_greater_seen(page, place.less, place.up_to), wanted_count);
	cfd_compared_keys(&compared, 0, cfd_page_may_be_full(page) ? page->count - 1 : 0, wanted_count);
}
