/*
 * quals.c
 *	  Quals that the keeper evaluates, and their costs; see quals.h.
 *
 * A cached qual is found by its address and then compared, since the address
 * may have been reused. Lists are built anew for each path and are compared
 * only.
 *
 * Invariants: as in quals.h.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "batch/driver.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "plan/planning.h"
#include "plan/quals.h"
#include "program/compile.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "wire/columns.h"

struct CfdQuals
{
	const Node *node;
	Node	   *copy;
	bool		compiles;
	CfdProgram *program;		/* of a list */
	struct CfdQuals *next;
};

static void
compile_now(CfdQuals *made)
{
	if (IsA(made->copy, List))
	{
		made->program = cfd_compile_quals(cfd_compiler_with_lists(), (List *) made->copy);
		made->compiles = made->program != NULL;
	}
	else
		made->compiles = cfd_compilable(made->copy);
}

static const CfdQuals *
compiled(Node *node)
{
	MemoryContext before;
	CfdQuals   *made;

	for (CfdQuals *known = cfd_planning == NULL ? NULL : cfd_planning->quals; known != NULL; known = known->next)
	{
		if ((known->node == node || (IsA(node, List) && IsA(known->copy, List))) && equal(known->copy, node))
			return known;
	}
	/* Passes over finished plans call this as well, outside of planning. */
	before = MemoryContextSwitchTo(cfd_planning == NULL ? CurrentMemoryContext : cfd_planning->context);
	made = palloc0(sizeof(CfdQuals));
	made->node = node;
	made->copy = copyObject(node);
	compile_now(made);
	if (cfd_planning != NULL)
	{
		made->next = cfd_planning->quals;
		cfd_planning->quals = made;
	}
	MemoryContextSwitchTo(before);
	return made;
}

bool
cfd_qual_compiles(Node *qual)
{
	return compiled(qual)->compiles;
}

CfdProgram *
cfd_quals_program(List *quals)
{
	return quals == NIL ? NULL : compiled((Node *) quals)->program;
}

/*
 * Measured: a row of a plain sequential scan takes 58 ns, which the planner
 * costs at 0.018. A round trip takes 0.6 us. An operation on a row takes 17 to
 * 33 ns, including the transfer of its column.
 */
double		cfd_round_trip_cost = 0.2;
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
	const CfdProgram *program = cfd_quals_program(quals);

	return program != NULL ? program->calls : list_length(quals);
}

Cost
cfd_batch_cost(double rows, List *quals)
{
	double		round_trips = ceil(rows / cfd_batch_rows) + log2(Max(Min(rows, cfd_batch_rows) / CFD_BATCH_FIRST_ROWS, 1));

	return round_trips * cfd_round_trip_cost + rows * count_operations(quals) * cfd_batch_row_cost;
}

void
cfd_cost_init(void)
{
	DefineCustomRealVariable("confide.round_trip_cost",
							 "Sets the planner's estimate of the cost of a round trip with the keeper.",
							 NULL, &cfd_round_trip_cost, 0.2, 0, DBL_MAX, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable("confide.batch_row_cost",
							 "Sets the planner's estimate of the cost of an operation on a row within a batch.",
							 NULL, &cfd_batch_row_cost, 0.005, 0, DBL_MAX, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
}
