/*
 * rivals.h
 *	  What PostgreSQL's own aggregations of protected keys cost.
 *
 * Invariant: a path's costs change, nothing else of it.
 */
#ifndef CFD_NODE_AGGREGATE_RIVALS_H
#define CFD_NODE_AGGREGATE_RIVALS_H

#include "postgres.h"
#include "nodes/pathnodes.h"

/* Adds to the paths of a query's groups, which are PostgreSQL's, what they would ask the keeper. */
extern void cfd_aggregate_price_rivals(PlannerInfo *root, List *clauses, RelOptInfo *output);

#endif
