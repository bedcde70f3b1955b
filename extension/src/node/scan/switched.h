/*
 * switched.h
 *	  Scans whose quals are on encodings (family soft_), and may be evaluated by
 *	  PostgreSQL or by the keeper: a ConfideScan with a switch.
 *
 * switch_path.c makes paths and plans; switched.c executes them. While the keeper evaluates, rows go through
 * batches, as in any ConfideScan; while PostgreSQL does, they are passed on one by one, without
 * being copied. Which side it is, is decided by switch/decide.c.
 *
 * Invariant: the rows are the same, whichever side evaluates. Where the keeper
 * refuses, or has an error, PostgreSQL evaluates.
 */
#ifndef CFD_NODE_SCAN_SWITCHED_H
#define CFD_NODE_SCAN_SWITCHED_H

#include "postgres.h"
#include "node/scan/state.h"
#include "nodes/pathnodes.h"
#include "portability/instr_time.h"
#include "switch/switch.h"

typedef struct CfdSwitched
{
	CfdWork		work;
	ExprState  *quals;			/* on the encodings */
	CfdSide		side;
	bool		started;		/* the side of the first rows was chosen */
	bool		ended;			/* the child has no more rows */
	int			left;			/* rows until the next decision, while PostgreSQL evaluates */
	uint64		seen;
	double		spent;			/* nanoseconds for the batches that are with the keeper */
	/* for EXPLAIN ANALYZE */
	uint64		rows[CFD_SIDES];
	uint64		removed;
	uint64		switches;
} CfdSwitched;

/* switch_path.c */
extern void cfd_switch_paths(PlannerInfo *root, RelOptInfo *rel);
/* What the switch needs, in a plan's private list; NIL: it has none. */
extern List *cfd_switch_private(const CustomScan *scan);

/* switched.c */
extern CfdSwitched *cfd_switched_begin(CfdScanState *state, const CustomScan *scan);
extern void cfd_switched_restart(CfdSwitched *switched);
/* The next row that passes, or NULL. */
extern TupleTableSlot *cfd_switched_next(CfdScanState *state);
/* Around the sending of a batch, and the wait for its answer. */
extern void cfd_switched_clock(instr_time *start);
extern void cfd_switched_spent(CfdSwitched *switched, instr_time start);
/* The keeper has decided about rows of a batch. */
extern void cfd_switched_decided(CfdScanState *state, int rows);
/* Has PostgreSQL decide about the rest of a batch. */
extern void cfd_switched_decide(CfdScanState *state, CfdBuffer *buffer);

#endif
