/*
 * scan.h
 *	  Plan node ConfideScan, which evaluates protected quals and computes
 *	  protected expressions for batches of rows, above a scan or join of
 *	  PostgreSQL's own.
 *
 * path.c creates the paths and the plan, join.c those above a join; node.c
 * executes the node; pairs.c reads the pairs of a semijoin or antijoin;
 * explain.c implements EXPLAIN. The batch driver (batch/driver.h) reads the
 * rows. The child evaluates the plain quals. Access methods are of no concern
 * here.
 *
 * Invariants: rows and errors are those of the child with all quals and
 * expressions evaluated row by row. What is declassified is whether a row
 * passes all quals together, which is less than row-by-row evaluation
 * declassifies, or whether an outer row has a match. Where the query may end
 * before the table does (LIMIT, EXISTS, semijoins, cursors), the keeper
 * reports results only up to the first row that passes, then up to the second
 * one after that, then the fourth, and so on.
 *
 * custom_exprs of the plan has the quals, for EXPLAIN, and the inputs of their
 * program, or is empty. custom_private has a boolean that tells whether the
 * query may end early, and the program (program/compile.h).
 */
#ifndef CFD_NODE_SCAN_SCAN_H
#define CFD_NODE_SCAN_SCAN_H

#include "postgres.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "program/compile.h"

/* Name in EXPLAIN. */
#define CFD_SCAN_NAME "ConfideScan"

extern bool cfd_enable_batch_scan;

extern void cfd_scan_init(void);
/* Add paths to those of a base relation, and to those of a join (join.c). */
extern void cfd_scan_paths(PlannerInfo *root, RelOptInfo *rel);
extern void cfd_scan_join_paths(PlannerInfo *root, RelOptInfo *joined, RelOptInfo *outer, RelOptInfo *inner,
								JoinType type, JoinPathExtraData *extra);
/* Whether any part of the query may be evaluated in batches. */
extern bool cfd_may_scan(PlannerInfo *root);
/* Whether quals of a table may be evaluated in batches, ahead of the rows requested. */
extern bool cfd_scan_suits(PlannerInfo *root, RelOptInfo *rel);
/* The scan below a ConfideScan path. Any other path is returned unchanged. */
extern Path *cfd_scan_below(Path *path);
/* Completes a plan node whose quals are known. */
extern Plan *cfd_scan_above(const PlannerInfo *root, Relids relids, CustomScan *scan, Plan *child, List *tlist);
/*
 * A node above a finished plan of which all rows will be read. Targets, quals and the inputs of
 * their program refer to the plan's columns (INDEX_VAR).
 */
extern Plan *cfd_scan_over(Plan *child, List *targets, List *quals, const CfdProgram *program);
extern Node *cfd_scan_create_state(CustomScan *scan);

#endif
