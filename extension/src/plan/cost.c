/*
 * cost.c
 *	  What the keeper's work costs: see cost.h.
 *
 * Invariant: as in cost.h.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "batch/buffer.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "plan/cost.h"
#include "plan/quals.h"
#include "utils/guc.h"
#include "wire/columns.h"

/*
 * Measured: a row of a plain scan costs 58 ns, which the planner calls 0.018; an
 * exchange 0.6 us; an operation on a row 17 to 33 ns, its column's way included.
 */
double		cfd_exchange_cost = 0.2;
double		cfd_batch_row_cost = 0.005;

double
cfd_rows_scanned(PlannerInfo *root, RelOptInfo *rel, Path *path)
{
	double		part = rel->rows > 0 && path->param_info == NULL ? Min(path->rows / rel->rows, 1) : 1;
	Cost		cost;
	Selectivity selectivity = 1;

	switch (path->pathtype)
	{
		case T_IndexScan:
		case T_IndexOnlyScan:
			selectivity = ((IndexPath *) path)->indexselectivity;
			break;
		case T_BitmapHeapScan:
			cost_bitmap_tree_node(((BitmapHeapPath *) path)->bitmapqual, &cost, &selectivity);
			break;
		case T_TidScan:
			return 1;
		default:
			break;
	}
	return clamp_row_est(rel->tuples * selectivity * part);
}

static int
count_operations(List *quals)
{
	int			operations = cfd_quals_operations(quals);

	return operations >= 0 ? operations : list_length(quals);
}

Cost
cfd_batch_cost(double rows, List *quals)
{
	double		exchanges = ceil(rows / cfd_batch_rows) + log2(Max(Min(rows, cfd_batch_rows) / CFD_BATCH_FIRST_ROWS, 1));

	return exchanges * cfd_exchange_cost + rows * count_operations(quals) * cfd_batch_row_cost;
}

void
cfd_cost_init(void)
{
	DefineCustomRealVariable("confide.exchange_cost",
							 "Sets the planner's estimate of the cost of an exchange with the keeper.",
							 NULL, &cfd_exchange_cost, 0.2, 0, DBL_MAX, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable("confide.batch_row_cost",
							 "Sets the planner's estimate of the cost of an operation on a row within a batch.",
							 NULL, &cfd_batch_row_cost, 0.005, 0, DBL_MAX, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
}
