/*
 * estimate.h
 *	  Selectivity of conditions on protected columns: PostgreSQL's own estimators,
 *	  preceded by a round trip that tests all values of the column's statistics, for all
 *	  simple conditions on the column.
 *
 * Invariant: what is remembered are tests that the estimators make themselves, or that
 * follow from those; nothing is remembered beyond the planning.
 */
#ifndef CFD_PLAN_ESTIMATE_H
#define CFD_PLAN_ESTIMATE_H

#include "postgres.h"
#include "wire/wire.h"
#include "fmgr.h"
#include "nodes/pathnodes.h"

/* Selectivity of a bound with these arguments, beside other bounds of its column (ranges.c). */
extern Selectivity cfd_estimate_bound(PlannerInfo *root, List *args, int relid, Selectivity selectivity);

/* A clause, with its arms' RestrictInfos if it is an OR (ranges.c). */
extern Node *cfd_clause_of(Node *node);

#endif
