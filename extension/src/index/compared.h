/*
 * compared.h
 *	  The comparisons that PostgreSQL makes on a page of a B-tree, as known
 *	  facts.
 *
 * A search knows the places of its values among the keys of a page. From them
 * follows how each key compares with each value. Stored are the comparisons
 * that PostgreSQL is about to make.
 *
 * Invariant: as in search.h.
 */
#ifndef CFD_INDEX_COMPARED_H
#define CFD_INDEX_COMPARED_H

#include "postgres.h"
#include "access/stratnum.h"
#include "index/pages.h"
#include "wire/wire.h"

/* The keys of a page that equal a value; if there are none, where they would be. */
typedef struct CfdPlace
{
	int			less;			/* number of smaller keys */
	int			up_to;			/* number of smaller or equal keys */
} CfdPlace;

/* What a scan searches for in a column of the index. */
typedef struct CfdWanted
{
	AttrNumber	column;
	bool		descending;
	CfdFid		fid;			/* 0: not protected */
	uint16		program;		/* compares a key with it */
	Datum		plain;
	StrategyNumber strategy;	/* of the condition */
	CfdPlace	found;			/* among the keys of the request that equal the previous values */
	CfdPlace	place;			/* the same on the current page */
} CfdWanted;

/* A page, and values whose places on it are known. */
typedef struct CfdCompared
{
	const CfdWanted *wanted;
	int			items;			/* number of keys without the high key */
	int			count;
	bool		leaf;
	/* Its keys: column by column, or on the page. */
	const CfdFid *fids;
	const CfdKeys *page;
	Relation	index;
} CfdCompared;

/* Whether this is the second bound of a range. */
static inline bool
cfd_is_beside(const CfdWanted *wanted, int number)
{
	return number > 0 && wanted[number].column == wanted[number - 1].column;
}

/*
 * Stores how keys of the page compare with the first `values` values, each up to the first column
 * that differs: those from `first` up to `last`; those that PostgreSQL's binary search for the key
 * after the first `before` looks at.
 */
extern void cfd_compared_keys(const CfdCompared *on, int first, int last, int values);
extern void cfd_compared_path(const CfdCompared *on, int before, int values);
/*
 * The same for what follows when PostgreSQL has found no row with the key: it continues from the
 * first equal one. `greater` is the last key that it found to be greater.
 */
extern void cfd_compared_again(const CfdCompared *on, CfdPlace equal, int greater, int values);

#endif
