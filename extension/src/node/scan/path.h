/*
 * path.h
 *	  What the makers of ConfideScan's paths share: path.c, join.c and
 *	  switch_path.c.
 *
 * Invariant: as in scan.h.
 */
#ifndef CFD_NODE_SCAN_PATH_H
#define CFD_NODE_SCAN_PATH_H

#include "postgres.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "program/compile.h"

/* A copy of a path to a table; NULL if it is of another kind. */
extern Path *cfd_scan_copy_path(const Path *path);
/* Has a scan return the table's rows as they are, if it returns columns only. */
extern void cfd_scan_whole_rows(PlannerInfo *root, Plan *child);
/*
 * Completes a plan node with the quals, their program (both may be none), and
 * what the switch needs (NIL: it has none).
 */
extern Plan *cfd_scan_with(const PlannerInfo *root, Relids relids, CustomScan *scan, Plan *child, List *tlist,
						   List *quals, CfdProgram *program, List *switched);

#endif
