/*
 * rivals.c
 *	  Costs of PostgreSQL's own aggregations over protected keys; see
 *	  rivals.h.
 *
 * PostgreSQL compares the keys of sorted rows one by one and charges a cheap
 * operator for each comparison. With a protected key, each comparison takes a
 * round trip. So does each comparison when it sorts the input of an aggregate
 * with DISTINCT or ORDER BY, which it does not charge at all. Hash tables use
 * tokens (node/tokens).
 *
 * Invariant: as in rivals.h.
 */
#include "postgres.h"

#include <math.h>

#include "cell/cell.h"
#include "node/aggregate/rivals.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "plan/quals.h"
#include "value/types.h"

/*
 * The planner may underestimate the number of rows. That costs little in
 * batches, but everything row by row. Among paths of about the same cost,
 * which for PostgreSQL means a difference of at most one percent, the one that
 * asks row by row must therefore be more expensive.
 */
#define RISK 0.02

/* Number of keys whose type is known to `code_of`. */
static int
keys_of_family(PlannerInfo *root, List *clauses, uint8 (*code_of) (Oid))
{
	int			count = 0;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		Node	   *key = get_sortgroupclause_expr(lfirst_node(SortGroupClause, cell), root->processed_tlist);

		count += code_of(exprType(key)) != 0;
	}
	return count;
}

/* The code of a type whose values PostgreSQL asks about one by one: not of cells with tokens. */
static uint8
asked_code(Oid type)
{
	return cfd_cell_has_token(type) ? 0 : cfd_family_code(type);
}

static uint8
asked_cell_code(Oid type)
{
	return cfd_cell_has_token(type) ? 0 : cfd_cell_code(type);
}

/* What PostgreSQL does row by row. */
typedef struct Asked
{
	int			keys;			/* protected grouping keys */
	int			cells;			/* those that are cells, which PostgreSQL hashes one by one */
	int			sorts;			/* aggregates whose input is sorted by protected values */
} Asked;

static bool
count_sorts(Node *node, Asked *asked)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		Aggref	   *aggref = (Aggref *) node;
		List	   *clauses = aggref->aggdistinct != NIL ? aggref->aggdistinct : aggref->aggorder;
		ListCell   *cell;

		foreach(cell, clauses)
		{
			Node	   *key = get_sortgroupclause_expr(lfirst_node(SortGroupClause, cell), aggref->args);

			if (asked_code(exprType(key)) == 0)
				continue;
			asked->sorts++;
			break;
		}
		return false;
	}
	return expression_tree_walker(node, count_sorts, asked);
}

/* Comparisons for sorting the rows of each group and comparing neighbours. */
static double
round_trips_of_sort(double rows, double groups)
{
	return rows * (1 + log2(Max(rows / Max(groups, 1), 2)));
}

/* Number of round trips caused by single rows in a path and the paths below it. */
static double
round_trips_by_row(Path *path, const Asked *asked)
{
	switch (nodeTag(path))
	{
		case T_AggPath:
			{
				AggPath    *agg = (AggPath *) path;
				double		below = round_trips_by_row(agg->subpath, asked);

				if (asked->sorts > 0 && agg->aggsplit == AGGSPLIT_SIMPLE)
					below += asked->sorts * round_trips_of_sort(agg->subpath->rows, agg->numGroups);

				if (agg->aggstrategy == AGG_SORTED)
					return below + agg->subpath->rows * asked->keys;
				if (agg->aggstrategy == AGG_HASHED)
					return below + agg->subpath->rows * asked->cells * 2;
				return below;
			}
		case T_GroupPath:
			return round_trips_by_row(((GroupPath *) path)->subpath, asked) + ((GroupPath *) path)->subpath->rows * asked->keys;
		case T_UpperUniquePath:
			return round_trips_by_row(((UpperUniquePath *) path)->subpath, asked) +
				((UpperUniquePath *) path)->subpath->rows * asked->keys;
		case T_SortPath:
			return round_trips_by_row(((SortPath *) path)->subpath, asked);
		case T_GatherPath:
			return round_trips_by_row(((GatherPath *) path)->subpath, asked);
		case T_GatherMergePath:
			return round_trips_by_row(((GatherMergePath *) path)->subpath, asked);
		case T_ProjectionPath:
			return round_trips_by_row(((ProjectionPath *) path)->subpath, asked);
		default:
			return 0;
	}
}

void
cfd_aggregate_price_rivals(PlannerInfo *root, List *clauses, RelOptInfo *output)
{
	Asked		asked = {
		.keys = keys_of_family(root, clauses, asked_code),
		.cells = keys_of_family(root, clauses, asked_cell_code)
	};
	ListCell   *cell;

	if (root->parse->hasAggs)
	{
		count_sorts((Node *) output->reltarget->exprs, &asked);
		count_sorts(root->parse->havingQual, &asked);
	}
	if (asked.keys == 0 && asked.sorts == 0)
		return;
	foreach(cell, output->pathlist)
	{
		Path	   *path = lfirst(cell);
		double		round_trips = round_trips_by_row(path, &asked);

		if (round_trips == 0)
			continue;
		path->total_cost += round_trips * cfd_round_trip_cost + RISK * path->total_cost;
		/* Sorted groups are returned before all rows have been read. */
		if (IsA(path, AggPath) && ((AggPath *) path)->aggstrategy != AGG_SORTED)
			path->startup_cost += round_trips * cfd_round_trip_cost;
	}
}
