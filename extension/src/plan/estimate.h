/*
 * estimate.h
 *	  Selectivity of conditions on protected columns: PostgreSQL's own estimators,
 *	  preceded by an exchange that tests all values of the column's statistics, for all
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

/* The estimate that is being made; 0 tests: none. */
typedef struct CfdEstimate
{
	int			count;
	int			next;			/* where the next test is looked for first */
	Oid			function;
	CfdFid		constant;
	bool		constant_first;
	CfdFid	   *values;
	char	   *answers;
} CfdEstimate;

extern CfdEstimate cfd_estimate;
extern bool cfd_estimate_find(CfdFid value, bool *holds);
/* Selectivity of a bound with these arguments, beside other bounds of its column (ranges.c). */
extern Selectivity cfd_estimate_bound(PlannerInfo *root, List *args, int relid, Selectivity selectivity);

/* A clause, with its arms' RestrictInfos if it is an OR (ranges.c). */
extern Node *cfd_clause_of(Node *node);

/* Whether a test was made beforehand; then what it gave. */
static inline bool
cfd_estimate_test(const FmgrInfo *function, CfdFid a, CfdFid b, bool *holds)
{
	const CfdEstimate *made = &cfd_estimate;

	if (likely(made->count == 0) || function == NULL || function->fn_oid != made->function)
		return false;
	if (made->constant_first)
		return a == made->constant && cfd_estimate_find(b, holds);
	return b == made->constant && cfd_estimate_find(a, holds);
}

#endif
