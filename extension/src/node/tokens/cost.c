/*
 * cost.c
 *	  Adds hash join paths with the cost that they have with tokens; see
 *	  tokens.h.
 *
 * PostgreSQL assumes one round trip per comparison of protected keys. If all
 * hash keys of a join are protected, its hash join is offered again, with
 * comparisons at the cost of plain ones plus the batches of tokens. The path
 * is PostgreSQL's own; plan.c adds the nodes to the finished plan.
 *
 * Invariant: the path differs from PostgreSQL's in nothing but its costs.
 */
#include "postgres.h"

#include <math.h>

#include "wire/columns.h"
#include "node/tokens/tokens.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "plan/quals.h"
#include "value/types.h"

Cost
cfd_token_cost(double rows, int keys)
{
	return cfd_round_trip_cost * (1 + ceil(rows / cfd_batch_rows)) + rows * keys * cfd_batch_row_cost;
}

/*
 * Whether one side of a clause belongs to the outer relation and the other to
 * the inner one.
 */
static bool
matches(RestrictInfo *info, RelOptInfo *outer, RelOptInfo *inner)
{
	info->outer_is_left = bms_is_subset(info->left_relids, outer->relids);
	if (info->outer_is_left)
		return bms_is_subset(info->right_relids, inner->relids);
	return bms_is_subset(info->left_relids, inner->relids) && bms_is_subset(info->right_relids, outer->relids);
}

/*
 * The clauses that a hash join can use. Returns NIL if there are none, or if
 * one of them does not support tokens.
 */
static List *
hash_clauses(RelOptInfo *joined, RelOptInfo *outer, RelOptInfo *inner, JoinType type, List *infos)
{
	List	   *clauses = NIL;
	ListCell   *cell;

	foreach(cell, infos)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);
		OpExpr	   *clause = (OpExpr *) info->clause;

		if ((IS_OUTER_JOIN(type) && RINFO_IS_PUSHED_DOWN(info, joined->relids)) || !info->can_join ||
			!OidIsValid(info->hashjoinoperator) || !matches(info, outer, inner))
			continue;
		if (!cfd_has_tokens(info->hashjoinoperator, linitial(clause->args), lsecond(clause->args)))
			return NIL;
		clauses = lappend(clauses, info);
	}
	return clauses;
}

/* Sets the costs of the clauses and returns the previous ones. */
static QualCost *
exchange_costs(List *clauses, const QualCost *costs)
{
	QualCost   *before = palloc(list_length(clauses) * sizeof(QualCost));
	ListCell   *cell;

	foreach(cell, clauses)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);

		before[foreach_current_index(cell)] = info->eval_cost;
		info->eval_cost = costs[foreach_current_index(cell)];
	}
	return before;
}

static HashPath *
hash_join(PlannerInfo *root, RelOptInfo *joined, JoinType type, Path *outer, Path *inner, List *clauses,
		  JoinPathExtraData *extra)
{
	/* The first clause stands for the comparison of tokens; the others are free. */
	QualCost   *costs = palloc0(list_length(clauses) * sizeof(QualCost));
	QualCost   *before;
	JoinCostWorkspace workspace;
	HashPath   *path;

	costs[0].per_tuple = cpu_operator_cost;
	before = exchange_costs(clauses, costs);
	initial_cost_hashjoin(root, &workspace, type, clauses, outer, inner, extra, false);
	path = create_hashjoin_path(root, joined, type, &workspace, extra, outer, inner, false,
								extra->restrictlist, NULL, clauses);
	exchange_costs(clauses, before);
	return path;
}

void
cfd_tokens_join_paths(PlannerInfo *root, RelOptInfo *joined, RelOptInfo *outer, RelOptInfo *inner,
					  JoinType type, JoinPathExtraData *extra)
{
	Path	   *left = outer->cheapest_total_path;
	Path	   *right = inner->cheapest_total_path;
	List	   *clauses;
	HashPath   *path;
	Cost		tokens;

	if (!cfd_enable_hash_tokens || !enable_hashjoin || type == JOIN_UNIQUE_OUTER || type == JOIN_UNIQUE_INNER ||
		joined->lateral_relids != NULL || !OidIsValid(cfd_access_method()))
		return;
	if (left == NULL || left->param_info != NULL || right == NULL || right->param_info != NULL)
		return;
	clauses = hash_clauses(joined, outer, inner, type, extra->restrictlist);
	if (clauses == NIL)
		return;
	path = hash_join(root, joined, type, left, right, clauses, extra);
	tokens = cfd_token_cost(right->rows, list_length(clauses));
	path->jpath.path.startup_cost += tokens;
	path->jpath.path.total_cost += tokens + cfd_token_cost(left->rows, list_length(clauses));
	add_path(joined, &path->jpath.path);
}
