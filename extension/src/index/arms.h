/*
 * arms.h
 *	  Several descents in one B-tree, side by side: what they look for, and how they go.
 *
 * Whoever knows several scans to come (ahead.c: of an OR or an array; outer.c: of a nested loop's outer
 * rows) makes arms of them and has them descend: a round trip for each level of the tree, not
 * for each level of each scan. What the keeper has said is then known (known/known.h) as long as the group's scope.
 *
 * Invariant: as of ahead.h.
 */
#ifndef CFD_INDEX_ARMS_H
#define CFD_INDEX_ARMS_H

#include "postgres.h"
#include "access/genam.h"
#include "index/pages.h"
#include "known/known.h"
#include "utils/relcache.h"

/* A value, and how keys are compared with it. */
typedef struct CfdArmValue
{
	CfdFid		fid;
	uint16		program;
} CfdArmValue;

typedef struct CfdArm
{
	IndexScanDesc desc;			/* of the scans of an OR, or of an array */
	const CfdArmValue *lead;	/* in the columns before the group's last one: equalities */
	CfdArmValue values[2];		/* in that: where it begins, and the other bound if there is one */
	int			count;
	bool		behind_equals;	/* it begins behind what equals the value */
	BlockNumber block;			/* where it is; P_NONE: at its end */
	struct CfdQuestion *asked;	/* what is asked for it there, and which of the values are its */
	int			at;
} CfdArm;

/* The scans of a BitmapOr, some elements of a scan's array, or those for some outer rows. */
typedef struct CfdArms
{
	MemoryContext context;
	MemoryContextCallback at_end;
	Relation	index;
	int			columns;		/* that all arms are bounded in */
	int			room;
	int			count;
	CfdArm	   *arms;
	bool		asked;
	CfdScope	known;			/* where its values belong in the pages that were asked about */
	MemoryContext asking;		/* of questions and their keys */

	IndexScanDesc scan;			/* whose array it is, or NULL */
	int			end;			/* element behind those that were asked about */
	int			window;			/* how many were, the last time */

	const void *state;			/* of the plan that has outer rows, or NULL ... */
	int			inner;			/* ... number of the node whose scan they will begin ... */
	const IndexScanDesc *where; /* ... and where that is, once it has begun */
	uint64		round_trips;	/* for EXPLAIN ANALYZE */
	struct CfdArms *next;
} CfdArms;

/* Room is for so many arms. */
extern CfdArms *cfd_arms_make(MemoryContext context, int room);
/* Lets the group's scans find it, until its context ends. */
extern void cfd_arms_add(CfdArms *group);
/* Forgets what was asked, and the arms. */
extern void cfd_arms_clear(CfdArms *group);
/* All arms descend, from the root to the last leaves of their ranges. */
extern void cfd_arms_ask(CfdArms *group);
/* The group that a scan is an arm of, or whose array or outer rows have them; or NULL. */
extern CfdArms *cfd_arms_of(IndexScanDesc scan);
/* Links the groups whose outer rows begin the scan of a plan's node to it. */
extern void cfd_arms_link(const void *state, int node, const IndexScanDesc *where, Relation index);
/* How a key of a column is compared with a value of a type; false: not by the keeper's order. */
extern bool cfd_arms_value(Relation index, int column, Oid type, Datum value, CfdArmValue *to);

#endif
