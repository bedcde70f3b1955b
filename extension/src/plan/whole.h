/*
 * whole.h
 *	  Makes scans below our plan nodes return whole rows as they are
 *	  stored, so that PostgreSQL need not project a row of its own for
 *	  each.
 *
 * Invariant: the target list includes all requested columns.
 */
#ifndef CFD_BATCH_WHOLE_H
#define CFD_BATCH_WHOLE_H

#include "postgres.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/* Replaces a scan's target list by all columns of the table, or by the needed ones. */
extern void cfd_whole_rows(PlannerInfo *root, Plan *scan, List *needed);

#endif
