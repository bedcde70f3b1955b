/*
 * pages.h
 *	  Copies of B-tree pages, and the merged keys of a page and of pages below it.
 *
 * A descent needs one request to the keeper for each page. If it will probably reach the same pages
 * as the last one (ordered rows, a row that is read and then updated), or if there are few pages,
 * the lower pages are read ahead and their keys are merged with those of the page above. Then one
 * request is enough for all of them.
 *
 * Invariant: the keys of `CfdPages` are in the index's order. No upper page has changed since it
 * was copied and before the pages below it were, so their keys are between its own.
 */
#ifndef CFD_INDEX_PAGES_H
#define CFD_INDEX_PAGES_H

#include "postgres.h"
#include "access/nbtree.h"
#include "catalog/pg_index.h"
#include "utils/rel.h"
#include "wire/wire.h"

#define CFD_PAGE_KEYS_MAX (BLCKSZ / 16)
#define CFD_PAGES_MAX 6
/* No page is added if there are already so many keys. */
#define CFD_PAGES_KEYS 1024

/* A copy of a page; no lock is held while it is used. */
typedef struct CfdKeys
{
	BlockNumber block;
	BlockNumber next;			/* right sibling, or P_NONE */
	uint32		level;			/* 0: a leaf */
	bool		ignore;
	OffsetNumber first;			/* item number of the first key */
	int			items;			/* keys without the high key */
	int			count;			/* keys in the order of the page; the last may be the high key */
	int			above;			/* index of the page above it, and number of the child */
	int			child;
	int16		at[CFD_PAGE_KEYS_MAX];	/* positions of its keys among all */
	PGAlignedBlock image;
} CfdKeys;

/* Pages, the highest one first, and their merged keys. */
typedef struct CfdPages
{
	int			pages;
	int			keys;
	CfdKeys		page[CFD_PAGES_MAX];
	IndexTuple	key[CFD_PAGES_KEYS + CFD_PAGE_KEYS_MAX];
} CfdPages;

/* Copies and releases a page; all pages are read in this way. */
extern void cfd_page_copy(CfdKeys *page, Relation index, Buffer buffer);
/* Copies a page; with `below`, also pages below it. */
extern void cfd_pages_read(CfdPages *pages, Relation index, Buffer buffer, bool below);
/* Drops all pages but the first. */
extern void cfd_pages_keep_first(CfdPages *pages);
/* Returns a page that was read, or NULL. */
extern CfdKeys *cfd_pages_find(CfdPages *pages, BlockNumber block);
/* Finds the keys between "less" and "up_to" that equal a plain value, or where they would be. */
extern void cfd_pages_place_plain(const CfdPages *pages, Relation index, AttrNumber column, Datum value,
								  int *less, int *up_to);
/*
 * Finds the position among the keys from "less" up to "up_to", which are equal in that many
 * columns: after truncated keys that have no more columns, and after rows before the one to be
 * inserted (or NULL).
 */
extern int	cfd_page_among_equals(const CfdKeys *page, Relation index, int less, int up_to, int columns, ItemPointer row);
/*
 * The last key that PostgreSQL finds to be greater when it searches a leaf for the first of these
 * equal keys.
 */
extern int	cfd_page_greater_seen(const CfdKeys *page, int less, int up_to);
/*
 * Whether PostgreSQL may have to make room on a leaf before an insertion (by deduplication or
 * deletion of dead entries). If so, it searches the page again, comparing other keys.
 */
extern bool cfd_page_may_be_full(const CfdKeys *page);
/*
 * Whether a guessed page below is probably the right one, judging by earlier guesses in this index.
 */
extern bool cfd_pages_guess_pays(Relation index, const CfdKeys *page);
/* Notes that a descent has reached this page. */
extern void cfd_pages_reached(Relation index, const CfdKeys *page);

/* Returns a column of a key; false if it is truncated (below all values) or NULL. */
static inline bool
cfd_key_column(Relation index, IndexTuple tuple, AttrNumber column, Datum *key, bool *below)
{
	bool		null;

	*below = true;
	if (BTreeTupleGetNAtts(tuple, index) < column)
		return false;
	*key = index_getattr(tuple, column, RelationGetDescr(index), &null);
	*below = (index->rd_indoption[column - 1] & INDOPTION_NULLS_FIRST) != 0;
	return !null;
}

/* Returns the FID of a protected column in the form for the keeper. */
static inline CfdFid
cfd_key_fid(Relation index, IndexTuple tuple, AttrNumber column)
{
	Datum		key;
	bool		below;

	if (cfd_key_column(index, tuple, column, &key, &below))
		return DatumGetUInt64(key);
	return below ? CFD_SEARCH_BELOW : CFD_SEARCH_ABOVE;
}

/* Returns a key of a page. */
static inline IndexTuple
cfd_page_key(const CfdKeys *page, int number)
{
	OffsetNumber at = number < page->items ? page->first + number : P_HIKEY;

	return (IndexTuple) PageGetItem((Page) page->image.data, PageGetItemId((Page) page->image.data, at));
}

/* Returns the child of an inner page before the key with this number. */
static inline BlockNumber
cfd_page_child(const CfdKeys *page, int number)
{
	OffsetNumber at = page->first - 1 + Min(number, page->items);

	return BTreeTupleGetDownLink((IndexTuple) PageGetItem((Page) page->image.data,
														  PageGetItemId((Page) page->image.data, at)));
}

/* Returns how many of the page's own keys are among the first `place` of all. */
static inline int
cfd_page_place(const CfdKeys *page, int place)
{
	int			low = 0;
	int			high = page->count;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (page->at[middle] < place)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Fields of a search request before its keys. */
typedef struct CfdSearchBody
{
	CfdWireSearch fixed;
	CfdWireSought sought[CFD_SEARCH_VALUES_MAX];
} CfdSearchBody;

#endif
