/*
 * scan.h
 *	  The batched scan: a plan node above a scan of a table that has the protected
 *	  quals evaluated, and protected expressions computed, by the batch.
 *
 * path.c makes the paths and the plan, join.c those that stand above a join, node.c executes it and
 * asks the keeper, pairs.c reads the pairs of a semi or anti join, explain.c
 * explains. Rows come by the batch (batch/driver.h). The child is PostgreSQL's own scan or join,
 * with the plain quals; access methods are not known here.
 *
 * Invariants: rows and errors are those of the child with all quals and
 * expressions evaluated row by row; what is declassified is whether a row
 * passes the quals, which is less, or whether an outer row has a match. Where the query may
 * end before the table does (LIMIT, EXISTS, semijoins, cursors) the keeper tells it only up
 * to the first row that passes, then up to the second after that, the fourth, and so on.
 *
 * custom_exprs of the plan: the quals, for EXPLAIN, and the inputs of their program; or nothing.
 * custom_private: a boolean, whether the query may end early; the program (program/compile.h).
 */
#ifndef CFD_NODE_SCAN_SCAN_H
#define CFD_NODE_SCAN_SCAN_H

#include "postgres.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

/* As EXPLAIN shows it. */
#define CFD_SCAN_NAME "ConfideScan"

extern bool cfd_enable_batch_scan;

extern void cfd_scan_init(void);
/* Adds paths to those of a table, and to those of a join (join.c). */
extern void cfd_scan_paths(PlannerInfo *root, RelOptInfo *rel);
extern void cfd_scan_join_paths(PlannerInfo *root, RelOptInfo *joined, RelOptInfo *outer, RelOptInfo *inner,
								JoinType type, JoinPathExtraData *extra);
/* Whether anything of a query may be evaluated by the batch. */
extern bool cfd_may_scan(PlannerInfo *root);
/* Whether quals of a table may be evaluated by the batch, ahead of the rows wanted. */
extern bool cfd_scan_suits(PlannerInfo *root, RelOptInfo *rel);
/* The scan that a batched one stands above; any other path as it is. */
extern Path *cfd_scan_below(Path *path);
/* Completes a plan whose quals are known. */
extern Plan *cfd_scan_above(const PlannerInfo *root, Relids relids, CustomScan *scan, Plan *child, List *tlist);
extern Node *cfd_scan_create_state(CustomScan *scan);

#endif
