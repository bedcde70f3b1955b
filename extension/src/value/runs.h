/*
 * runs.h
 *	  Promotion of the values of many rows, column by column.
 */
#ifndef CFD_VALUE_RUNS_H
#define CFD_VALUE_RUNS_H

#include "postgres.h"
#include "value/promote.h"

/*
 * Promotes values that stand column by column, "rows" in each, 0 where there is none
 * to promote; puts their permanent FIDs in their place. False if the keeper wants them
 * one by one: then nothing has happened.
 */
extern bool cfd_promote_runs(Relation relation, const CfdColumns *columns, CfdFid *fids, int rows);

#endif
