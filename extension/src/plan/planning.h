/*
 * planning.h
 *	  The planning that is going on.
 *
 * Kept by hooks/planner.c, which owns the planner's hooks; read by whoever makes paths.
 *
 * Invariant: while a query is planned within another one's planning, it is the inner one.
 */
#ifndef CFD_PLAN_PLANNING_H
#define CFD_PLAN_PLANNING_H

#include "postgres.h"

typedef struct CfdQuals CfdQuals;

typedef struct CfdPlanning
{
	int			options;		/* CURSOR_OPT_* */
	MemoryContext context;		/* of what lives as long as the planning */
	CfdQuals   *quals;			/* that were compiled (quals.c) */
} CfdPlanning;

/* NULL: none. */
extern CfdPlanning *cfd_planning;

static inline int
cfd_planning_options(void)
{
	return cfd_planning == NULL ? 0 : cfd_planning->options;
}

#endif
