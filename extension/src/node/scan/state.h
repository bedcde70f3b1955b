/*
 * state.h
 *	  Execution state of ConfideScan, shared by node.c and explain.c.
 *
 * Invariant: as in scan.h.
 */
#ifndef CFD_NODE_SCAN_STATE_H
#define CFD_NODE_SCAN_STATE_H

#include "postgres.h"
#include "batch/driver.h"
#include "compat/explain.h"
#include "nodes/execnodes.h"
#include "program/compile.h"

struct CfdSwitched;

typedef struct CfdScanState
{
	CustomScanState css;
	CfdDriver	driver;			/* reads the child's rows */
	CfdCompiler *qual_inputs;
	CfdProgram *filter;			/* program of the quals; NULL: none */
	struct CfdSwitched *switched;	/* which side evaluates the filter; NULL: the keeper */
	NestLoopState *loop;		/* of a semijoin or antijoin, or NULL */
	CfdCompiler *project_inputs;
	List	   *computed;		/* CfdProgram of each computed column */
	List	   *computed_types; /* OIDs of their SQL types */
	TupleTableSlot *row;		/* child's attributes, then computed ones */
	ProjectionInfo *projection; /* NULL: return the row unchanged */
	bool		computing;		/* expressions over the passing rows were sent */
	bool		ends_early;		/* rows may be left unread */
	uint32		wanted;			/* passing rows to report next; 0: all */
	/* for EXPLAIN ANALYZE */
	uint64		bits;
	uint64		removed;
	uint64		values;
} CfdScanState;

/* node.c: the next row that passes by the keeper's answer, or NULL. */
extern TupleTableSlot *cfd_scan_next_row(CfdScanState *state);
/* explain.c */
extern void cfd_scan_explain(CustomScanState *node, List *ancestors, ExplainState *es);

static inline CfdScanState *
cfd_scan_of(CfdDriver *driver)
{
	return (CfdScanState *) ((char *) driver - offsetof(CfdScanState, driver));
}

#endif
