/*
 * planning.c
 *	  The planning that is going on: see planning.h.
 *
 * Invariant: as in planning.h.
 */
#include "postgres.h"

#include "plan/planning.h"

CfdPlanning *cfd_planning = NULL;
