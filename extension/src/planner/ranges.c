/*
 * ranges.c
 *	  Selectivity of two bounds of a column: see estimate.h.
 *
 * PostgreSQL knows a pair of bounds by the OIDs of its own estimators, and would multiply
 * the shares of protected ones as if they were independent. So an upper bound is estimated
 * among the rows above the lower one: the product is what PostgreSQL makes of a pair.
 *
 * Invariant: a bound that stands alone keeps its estimate.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "planner/estimate.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* PostgreSQL's, for the rounding of a range that seems to be empty. */
#define EMPTY_SELECTIVITY 1.0e-10

static Node *
without_relabel(Node *node)
{
	while (node != NULL && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

/* Whether a clause bounds the column: from above, or from below. */
static bool
is_bound(const RestrictInfo *info, Node *column, bool above)
{
	OpExpr	   *clause = (OpExpr *) info->clause;
	List	   *meanings;
	int			strategy;
	bool		first;

	if (!IsA(clause, OpExpr) || list_length(clause->args) != 2)
		return false;
	first = equal(without_relabel(linitial(clause->args)), column);
	if (contain_var_clause(first ? lsecond(clause->args) : linitial(clause->args)))
		return false;
	if (!first && !equal(without_relabel(lsecond(clause->args)), column))
		return false;
	meanings = get_op_btree_interpretation(clause->opno);
	if (meanings == NIL)
		return false;
	strategy = ((OpBtreeInterpretation *) linitial(meanings))->strategy;
	if (strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber)
		return above == first;
	if (strategy == BTGreaterStrategyNumber || strategy == BTGreaterEqualStrategyNumber)
		return above != first;
	return false;
}

/* The lower bound beside the upper one that has these arguments; NULL: there are not both. */
static RestrictInfo *
lower_bound(const VariableStatData *column, const List *args)
{
	RestrictInfo *lower = NULL;
	bool		found = false;
	ListCell   *cell;

	foreach(cell, column->rel != NULL ? column->rel->baserestrictinfo : NIL)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);

		if (IsA(info->clause, OpExpr) && ((OpExpr *) info->clause)->args == args)
			found = is_bound(info, column->var, true);
		else if (lower == NULL && is_bound(info, column->var, false))
			lower = info;
	}
	return found ? lower : NULL;
}

/* As PostgreSQL's: rows between the bounds. */
static Selectivity
between(Selectivity below, Selectivity above, const VariableStatData *column)
{
	Selectivity range = below + above - 1;

	if (below == DEFAULT_INEQ_SEL || above == DEFAULT_INEQ_SEL)
		return DEFAULT_RANGE_INEQ_SEL;
	if (HeapTupleIsValid(column->statsTuple))
		range += ((Form_pg_statistic) GETSTRUCT(column->statsTuple))->stanullfrac;
	if (range > 0)
		return range;
	return range < -0.01 ? DEFAULT_RANGE_INEQ_SEL : EMPTY_SELECTIVITY;
}

Selectivity
cfd_estimate_bound(PlannerInfo *root, List *args, int relid, Selectivity selectivity)
{
	VariableStatData column;
	RestrictInfo *lower;
	Node	   *other;
	bool		first;

	if (!get_restriction_variable(root, args, relid, &column, &other, &first))
		return selectivity;
	lower = lower_bound(&column, args);
	if (lower != NULL)
	{
		Selectivity above = clause_selectivity(root, (Node *) lower, 0, JOIN_INNER, NULL);

		if (above > 0)
			selectivity = between(selectivity, above, &column) / above;
		CLAMP_PROBABILITY(selectivity);
	}
	ReleaseVariableStats(column);
	return selectivity;
}
