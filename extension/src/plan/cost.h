/*
 * cost.h
 *	  What the planner thinks that the keeper's work costs.
 *
 * Invariant: an estimate asks neither keeper nor table.
 */
#ifndef CFD_PLAN_COST_H
#define CFD_PLAN_COST_H

#include "postgres.h"
#include "nodes/pathnodes.h"

/* confide.exchange_cost, confide.batch_row_cost */
extern double cfd_exchange_cost;
extern double cfd_batch_row_cost;

/* Rows of a table that the quals of a path to it are evaluated for. */
extern double cfd_rows_scanned(PlannerInfo *root, RelOptInfo *rel, Path *path);
/* Quals that are evaluated for so many rows by the batch. */
extern Cost cfd_batch_cost(double rows, List *quals);
extern void cfd_cost_init(void);

#endif
