/*
 * pages.h
 *	  Copies of B-tree pages, and the keys of a page together with those of pages below it.
 *
 * A descent asks the keeper once for each page. Where it is likely to come to the same pages as
 * the one before (rows of an order, a row that is read and then updated), or where there
 * are few, those are read beforehand and stand among the keys of the page above, where they
 * belong: one question then tells the way through all of them.
 *
 * Invariant: the keys of `CfdPages` are in the index's order. Of the pages above others none
 * has changed between its own copy and theirs, so that they hold what lies between its keys.
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
/* No page is added once there are so many keys. */
#define CFD_PAGES_KEYS 1024

/* A copy of a page; no lock is held while it is looked at. */
typedef struct CfdKeys
{
	BlockNumber block;
	BlockNumber next;			/* to the right, or P_NONE */
	uint32		level;			/* 0: a leaf */
	bool		ignore;
	OffsetNumber first;			/* item of the first key */
	int			items;			/* keys without the high key */
	int			count;			/* keys in the order of the page; the last may be the high key */
	int			above;			/* the page above it among those read, and which child it is */
	int			child;
	int16		at[CFD_PAGE_KEYS_MAX];	/* places of its keys among all */
	PGAlignedBlock image;
} CfdKeys;

/* Pages, the highest one first, and their keys in order. */
typedef struct CfdPages
{
	int			pages;
	int			keys;
	CfdKeys		page[CFD_PAGES_MAX];
	IndexTuple	key[CFD_PAGES_KEYS + CFD_PAGE_KEYS_MAX];
} CfdPages;

/* Copies a page, and lets go of it: the one way in which pages are read. */
extern void cfd_page_copy(CfdKeys *page, Relation index, Buffer buffer);
/* The same; with `below`, pages below it, too. */
extern void cfd_pages_read(CfdPages *pages, Relation index, Buffer buffer, bool below);
/* Leaves the first of them only. */
extern void cfd_pages_keep_first(CfdPages *pages);
/* A page that was read, or NULL. */
extern CfdKeys *cfd_pages_find(CfdPages *pages, BlockNumber block);
/* The keys from "less" up to "up_to" that equal a value which is not protected, where they are or would be. */
extern void cfd_pages_place_plain(const CfdPages *pages, Relation index, AttrNumber column, Datum value,
								  int *less, int *up_to);
/*
 * The place among the keys from "less" up to "up_to", which equal what is looked for in so many columns: behind bounds
 * whose row was cut off, if these are all of their columns; and behind rows before the one that is inserted (or NULL).
 */
extern int	cfd_page_among_equals(const CfdKeys *page, Relation index, int less, int up_to, int columns, ItemPointer row);
/* The last key that PostgreSQL sees to be greater when it searches a leaf for the first of these equal keys. */
extern int	cfd_page_greater_seen(const CfdKeys *page, int less, int up_to);
/*
 * Whether PostgreSQL may have to make room on a leaf before it inserts (deduplication, deletion of dead
 * entries): then it searches the page once more, by other keys than before.
 */
extern bool cfd_page_may_be_full(const CfdKeys *page);
/* Whether a page below that was guessed is likely to be the right one, as such guesses in this index have been. */
extern bool cfd_pages_guess_pays(Relation index, const CfdKeys *page);
/* A descent has come to this page. */
extern void cfd_pages_reached(Relation index, const CfdKeys *page);

/* A column of a key; false: cut off (below all values), or NULL. */
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

/* The same of a protected column, as the keeper is told of it. */
static inline CfdFid
cfd_key_fid(Relation index, IndexTuple tuple, AttrNumber column)
{
	Datum		key;
	bool		below;

	if (cfd_key_column(index, tuple, column, &key, &below))
		return DatumGetUInt64(key);
	return below ? CFD_SEARCH_BELOW : CFD_SEARCH_ABOVE;
}

/* A key of a page. */
static inline IndexTuple
cfd_page_key(const CfdKeys *page, int number)
{
	OffsetNumber at = number < page->items ? page->first + number : P_HIKEY;

	return (IndexTuple) PageGetItem((Page) page->image.data, PageGetItemId((Page) page->image.data, at));
}

/* An inner page's child before the key of that number. */
static inline BlockNumber
cfd_page_child(const CfdKeys *page, int number)
{
	OffsetNumber at = page->first - 1 + Min(number, page->items);

	return BTreeTupleGetDownLink((IndexTuple) PageGetItem((Page) page->image.data,
														  PageGetItemId((Page) page->image.data, at)));
}

/* How many of the page's own keys are among the first `place` of all. */
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

/* A question where values belong, up to its keys. */
typedef struct CfdSearchBody
{
	CfdWireSearch fixed;
	CfdWireSought sought[CFD_SEARCH_VALUES_MAX];
} CfdSearchBody;

#endif
