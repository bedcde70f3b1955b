/*
 * constants.h
 *	  Indexes on expressions with protected constants.
 *
 * PostgreSQL uses such an index where a query has the same expression, and two
 * protected constants are the same to it only if they are the same identifier.
 * Here those of an index are replaced, for one planning, by those of the query
 * that have equal values. The order of an index's expressions and everything
 * else is unchanged. Not for partitions, whose columns the query names by their
 * parent's.
 *
 * Invariant: an expression is replaced only by one that has the same result for every row.
 */
#ifndef CFD_PLAN_CONSTANTS_H
#define CFD_PLAN_CONSTANTS_H

#include "postgres.h"
#include "nodes/pathnodes.h"

extern void cfd_match_constants(PlannerInfo *root, RelOptInfo *rel);

#endif
