/*
 * rivals.h
 *	  Costs of PostgreSQL's own aggregate paths over protected keys.
 *
 * Invariant: only the costs of a path change.
 */
#ifndef CFD_NODE_AGGREGATE_RIVALS_H
#define CFD_NODE_AGGREGATE_RIVALS_H

#include "postgres.h"
#include "nodes/pathnodes.h"

/*
 * Adds to PostgreSQL's grouping paths the cost of the round trips that they
 * would need.
 */
extern void cfd_aggregate_price_rivals(PlannerInfo *root, List *clauses, RelOptInfo *output);

#endif
