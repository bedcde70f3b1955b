/*
 * planning.c
 *	  State of the current call of the planner; see planning.h.
 *
 * Invariant: as in planning.h.
 */
#include "postgres.h"

#include "plan/planning.h"

CfdPlanning *cfd_planning = NULL;
