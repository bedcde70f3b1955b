/*
 * whole.h
 *	  Scans below our nodes give whole rows, as they are stored: our nodes take what they
 *	  need of them, and PostgreSQL makes no row of its own for each.
 *
 * Invariant: all columns that were asked for are among the target entries.
 */
#ifndef CFD_BATCH_WHOLE_H
#define CFD_BATCH_WHOLE_H

#include "postgres.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/* Gives a scan of a table a target list of all columns, or of those needed. */
extern void cfd_whole_rows(PlannerInfo *root, Plan *scan, List *needed);

#endif
