/*
 * subquery.h
 *	  Has comparisons of protected values with the results of correlated
 *	  subqueries evaluated by the batch.
 *
 * Such a comparison is a qual of a scan or join in the finished plan. A ConfideScan
 * above it takes the qual over: PostgreSQL evaluates the subquery for each row of a batch, the
 * results stay in slots of the keeper, and one program compares them all. If the
 * subquery's result is that of an aggregation in the keeper, not even whether it is NULL is
 * asked (node/aggregate/aggregate.h).
 *
 * Invariants: subqueries are evaluated for the rows for which PostgreSQL would evaluate
 * them, in the same order, but ahead of the rows that are returned; therefore not
 * where rows may be left unread, nor behind a qual that the keeper has not decided yet, nor in
 * statements with side effects.
 */
#ifndef CFD_NODE_SUBQUERY_SUBQUERY_H
#define CFD_NODE_SUBQUERY_SUBQUERY_H

#include "postgres.h"
#include "nodes/plannodes.h"

extern void cfd_subquery_init(void);
/* Whether a query needs this pass after planning, and the pass itself. */
extern bool cfd_subquery_wanted(Query *query);
extern void cfd_subquery_pass(PlannedStmt *statement, int options);

#endif
