/*
 * arms.h
 *	  Several descents of one B-tree, side by side.
 *
 * A caller that knows several scans in advance (ahead.c: the arms of an OR or
 * the elements of an array; outer.c: the outer rows of a nested loop) makes an
 * arm of each and lets them descend together. That takes one round trip per
 * level of the tree, instead of one per level and scan. When one of the scans
 * begins, search.c makes known facts of the answers for its arm, without
 * reading the pages again.
 *
 * Invariant: as in ahead.h.
 */
#ifndef CFD_INDEX_ARMS_H
#define CFD_INDEX_ARMS_H

#include "postgres.h"
#include "access/genam.h"
#include "index/compared.h"
#include "utils/relcache.h"

/* A value, and the program that compares keys with it. */
typedef struct CfdArmValue
{
	CfdFid		fid;
	uint16		program;
} CfdArmValue;

/* A page that an arm has come to. */
typedef struct CfdArmPage
{
	BlockNumber block;
	const struct CfdQuestion *question;
	int			at;				/* the arm's first value in it */
	struct CfdArmPage *next;
} CfdArmPage;

typedef struct CfdArm
{
	IndexScanDesc desc;			/* scan of an OR's arm, or the scan with the array */
	const CfdArmValue *lead;	/* equality values for all columns but the group's last */
	CfdArmValue values[2];		/* last column: lower bound, and upper bound if any */
	int			count;
	bool		behind_equals;	/* starts after all keys equal to the value */
	BlockNumber block;			/* current page; P_NONE: finished */
	struct CfdQuestion *asked;	/* question asked for it there; `at` is its first value in it */
	int			at;
	CfdArmPage *pages;			/* the pages so far, if all questions were answered */
	CfdArmPage **last;
} CfdArm;

/* The arms of a BitmapOr, of some elements of an array, or of some outer rows. */
typedef struct CfdArms
{
	MemoryContext context;
	MemoryContextCallback at_end;
	Relation	index;
	int			columns;		/* leading columns that every arm constrains */
	int			room;
	int			count;
	CfdArm	   *arms;
	bool		asked;
	uint64		sweeps;			/* number of sweeps when they were asked */
	int			found;			/* the arm that was found last */
	MemoryContext asking;		/* memory of questions and their keys */

	IndexScanDesc scan;			/* scan whose array it is, or NULL */
	int			end;			/* first element that was not searched for */
	int			window;			/* number of elements in the last search */

	const void *state;			/* EState of the outer rows' plan, or NULL ... */
	int			inner;			/* ... plan_node_id of the inner scan ... */
	const IndexScanDesc *where; /* ... and the scan's descriptor, once begun */
	uint64		round_trips;	/* for EXPLAIN ANALYZE */
	struct CfdArms *next;
} CfdArms;

/* Allocates a group with room for so many arms. */
extern CfdArms *cfd_arms_make(MemoryContext context, int room);
/* Makes the group visible to its scans until its memory context is reset. */
extern void cfd_arms_add(CfdArms *group);
/* Removes the arms and the answers about them. */
extern void cfd_arms_clear(CfdArms *group);
/* Lets all arms descend from the root to the last leaf of their ranges. */
extern void cfd_arms_ask(CfdArms *group);
/*
 * The group that has the scan as an arm, or the group of its array or its
 * outer rows; otherwise NULL.
 */
extern CfdArms *cfd_arms_of(IndexScanDesc scan);
/*
 * The pages that the arm with these values has come to, the root first; NULL if there is no such arm,
 * if it did not get to the end, or if PostgreSQL will perhaps go to other pages.
 */
extern const CfdArmPage *cfd_arms_pages(CfdArms *group, const CfdWanted *wanted, int starts, int count,
										bool behind_equals);
/* Shows such a page, and sets the places of the values on it. */
extern void cfd_arms_compared(const CfdArmPage *at, CfdWanted *wanted, int count, CfdCompared *to);
/*
 * Connects the inner scan of a plan with the groups of outer rows that will
 * start it.
 */
extern void cfd_arms_link(const void *state, int node, const IndexScanDesc *where, Relation index);
/*
 * Determines how keys of a column are compared with a value of a type. Returns
 * false if the comparison does not use the keeper's order.
 */
extern bool cfd_arms_value(Relation index, int column, Oid type, Datum value, CfdArmValue *to);

#endif
