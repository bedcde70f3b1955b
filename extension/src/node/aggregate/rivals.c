/*
 * rivals.c
 *	  What PostgreSQL's own aggregations of protected keys cost: see rivals.h.
 *
 * PostgreSQL compares the keys of sorted rows one by one, and counts a cheap operator for each. A
 * protected key is a round trip. Where hash tables are filled by workers, keys are hashed one by one, too;
 * others get tokens (node/tokens).
 *
 * Invariant: as in rivals.h.
 */
#include "postgres.h"

#include "node/aggregate/rivals.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "plan/quals.h"
#include "value/types.h"

/*
 * The planner may expect far fewer rows than come. By the batch that costs little, row by row
 * everything. So of paths that seem to cost the same, which for PostgreSQL are those that differ by
 * no more than a hundredth, the one that asks row by row is dearer.
 */
#define RISK 0.02

static int
protected_keys(PlannerInfo *root, List *clauses)
{
	int			count = 0;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		Node	   *key = get_sortgroupclause_expr(lfirst_node(SortGroupClause, cell), root->processed_tlist);

		count += cfd_type_code(exprType(key)) != 0;
	}
	return count;
}

/* Round trips for the rows of a path and of those below it, in which each row is asked about. */
static double
round_trips_by_row(Path *path, int keys)
{
	switch (nodeTag(path))
	{
		case T_AggPath:
			{
				AggPath    *agg = (AggPath *) path;
				double		below = round_trips_by_row(agg->subpath, keys);

				if (agg->aggstrategy == AGG_SORTED)
					return below + agg->subpath->rows * keys;
				if (agg->aggstrategy == AGG_HASHED && agg->aggsplit != AGGSPLIT_SIMPLE)
					return below + agg->subpath->rows * keys * 2;
				return below;
			}
		case T_GroupPath:
			return round_trips_by_row(((GroupPath *) path)->subpath, keys) + ((GroupPath *) path)->subpath->rows * keys;
		case T_UpperUniquePath:
			return round_trips_by_row(((UpperUniquePath *) path)->subpath, keys) +
				((UpperUniquePath *) path)->subpath->rows * keys;
		case T_SortPath:
			return round_trips_by_row(((SortPath *) path)->subpath, keys);
		case T_GatherPath:
			return round_trips_by_row(((GatherPath *) path)->subpath, keys);
		case T_GatherMergePath:
			return round_trips_by_row(((GatherMergePath *) path)->subpath, keys);
		case T_ProjectionPath:
			return round_trips_by_row(((ProjectionPath *) path)->subpath, keys);
		default:
			return 0;
	}
}

void
cfd_aggregate_price_rivals(PlannerInfo *root, List *clauses, RelOptInfo *output)
{
	int			keys = protected_keys(root, clauses);
	ListCell   *cell;

	if (keys == 0)
		return;
	foreach(cell, output->pathlist)
	{
		Path	   *path = lfirst(cell);
		double		round_trips = round_trips_by_row(path, keys);

		if (round_trips == 0)
			continue;
		path->total_cost += round_trips * cfd_round_trip_cost + RISK * path->total_cost;
		/* Sorted groups come before all rows have been read. */
		if (IsA(path, AggPath) && ((AggPath *) path)->aggstrategy == AGG_HASHED)
			path->startup_cost += round_trips * cfd_round_trip_cost;
	}
}
