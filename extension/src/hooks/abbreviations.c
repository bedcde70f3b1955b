/*
 * abbreviations.c
 *	  Finds plans that compare the abbreviations of sorted values; see
 *	  ops/evaluate.h.
 *
 * PostgreSQL takes values for different, without calling their equality
 * operator, if their abbreviations are: in aggregates with DISTINCT of several
 * arguments, and in the hypothetical dense_rank.
 *
 * Invariant: no such aggregate sees two abbreviations of equal values.
 */
#include "postgres.h"

#include "catalog/pg_aggregate.h"
#include "executor/nodeAgg.h"
#include "hooks/hooks.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"

bool
cfd_compares_abbreviations(PlanState *state, void *context)
{
	if (IsA(state, AggState))
	{
		const AggState *aggregation = (const AggState *) state;

		for (int i = 0; i < aggregation->numtrans; i++)
		{
			const Aggref *aggregate = aggregation->pertrans[i].aggref;

			if (list_length(aggregate->aggdistinct) > 1 || aggregate->aggkind == AGGKIND_HYPOTHETICAL)
				return true;
		}
	}
	return planstate_tree_walker(state, cfd_compares_abbreviations, context);
}
