/*
 * planning.h
 *	  State of the current call of the planner.
 *
 * Maintained by hooks/planner.c, which owns the planner's hooks; read by code
 * that creates paths.
 *
 * Invariant: during nested planning, this is the innermost call.
 */
#ifndef CFD_PLAN_PLANNING_H
#define CFD_PLAN_PLANNING_H

#include "postgres.h"
#include "nodes/pg_list.h"

typedef struct CfdQuals CfdQuals;

typedef struct CfdPlanning
{
	int			options;		/* CURSOR_OPT_* */
	MemoryContext context;		/* memory context that lives as long as the planning */
	CfdQuals   *quals;			/* compiled quals (quals.c) */
	List	   *asked;			/* tests made for the conditions of the query (estimate.c) */
} CfdPlanning;

/* NULL if no planning is in progress. */
extern CfdPlanning *cfd_planning;

static inline int
cfd_planning_options(void)
{
	return cfd_planning == NULL ? 0 : cfd_planning->options;
}

#endif
