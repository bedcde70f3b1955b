/*
 * runs.h
 *	  Promotion of the values of many rows, column by column.
 */
#ifndef CFD_VALUE_RUNS_H
#define CFD_VALUE_RUNS_H

#include "postgres.h"
#include "value/promote.h"

/*
 * Promotes the values in `fids`, which holds `rows` entries for each column, 0
 * where there is nothing to promote. The permanent FIDs replace them. Returns
 * false, with nothing done, if the keeper requires single promotions.
 */
extern bool cfd_promote_runs(Relation relation, const CfdColumns *columns, CfdFid *fids, int rows);

#endif
