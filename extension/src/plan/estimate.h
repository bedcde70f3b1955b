/*
 * estimate.h
 *	  Selectivity of conditions on protected columns.
 *
 * PostgreSQL's own estimators do the work. Before they run, one round trip
 * tests all values of the columns' statistics for all simple conditions of the
 * query.
 *
 * Invariant: only tests that the estimators of the query's conditions make, or that follow
 * from those, are stored; nothing is stored beyond the planning of the query.
 */
#ifndef CFD_PLAN_ESTIMATE_H
#define CFD_PLAN_ESTIMATE_H

#include "postgres.h"
#include "wire/wire.h"
#include "fmgr.h"
#include "nodes/pathnodes.h"

/*
 * Selectivity of a bound with these arguments, taking other bounds on its
 * column into account (ranges.c).
 */
extern Selectivity cfd_estimate_bound(PlannerInfo *root, List *args, int relid, Selectivity selectivity);

/*
 * The clause of a RestrictInfo; for an OR, the version whose arms are
 * RestrictInfos (ranges.c).
 */
extern Node *cfd_clause_of(Node *node);

#endif
