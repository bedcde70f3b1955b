/*
 * neighbours.h
 *	  Whether a row that a sort has just given out equals those before it: nodes above
 *	  (Unique, groups of sorted rows) ask that of the keeper, unless it is known here.
 *
 * Invariant: what is told is what the ranks of the sort have told before; only the last
 * row given, and only the function that goes with the sort's order, are known.
 */
#ifndef CFD_KNOWN_NEIGHBOURS_H
#define CFD_KNOWN_NEIGHBOURS_H

#include "postgres.h"
#include "wire/wire.h"
#include "fmgr.h"

/* The last row given, the one before, and the first of those that equal that one. */
typedef struct CfdNeighbours
{
	const void *sort;			/* whose row it was, and which */
	int64		place;
	Oid			equality;		/* function; 0: nothing is known */
	CfdFid		last;
	CfdFid		before;
	CfdFid		first;
	bool		same;			/* the last one equals the others */
} CfdNeighbours;

extern CfdNeighbours cfd_neighbours;

/* A sort gives out the row at a place; `same`: it equals the row at the place before. */
static inline void
cfd_neighbour_next(const void *sort, int64 place, Oid equality, CfdFid fid, bool same)
{
	CfdNeighbours *known = &cfd_neighbours;

	/* Another sort, or this one has moved. */
	if (known->sort != sort || known->place + 1 != place)
		known->last = known->same = 0;
	/* The first that equal the row before: that itself, unless it equalled others. */
	if (!known->same)
		known->first = known->last;
	known->before = known->last;
	known->last = fid;
	known->sort = sort;
	known->place = place;
	known->same = same;
	known->equality = equality;
}

/* Nothing is known of the rows before: another sort, or the statement's end. */
static inline void
cfd_neighbour_forget(void)
{
	memset(&cfd_neighbours, 0, sizeof(cfd_neighbours));
}

/* Whether a test of equality is one that is known; then what it gives. */
static inline bool
cfd_neighbour_test(const FmgrInfo *function, CfdFid a, CfdFid b, bool *holds)
{
	const CfdNeighbours *known = &cfd_neighbours;

	if (likely(known->equality == InvalidOid) || function == NULL || function->fn_oid != known->equality)
		return false;
	if (b != known->last)
	{
		CfdFid		other = a;

		a = b;
		b = other;
	}
	if (b != known->last || (a != known->before && a != known->first))
		return false;
	*holds = known->same;
	return true;
}

#endif
