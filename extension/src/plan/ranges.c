/*
 * ranges.c
 *	  Selectivity of a pair of bounds on a column; see estimate.h.
 *
 * PostgreSQL recognises a pair of bounds by the OIDs of its own estimators.
 * For protected columns it would multiply the selectivities as if they were
 * independent. We therefore estimate an upper bound among the rows above the
 * lower bound, so that the product equals PostgreSQL's estimate for the pair.
 *
 * The two bounds must be in the same AND list: either that of the WHERE
 * clause, or an arm of an OR in it.
 *
 * Invariant: the estimate of a single bound does not change.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_statistic.h"
#include "compat/compat.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "plan/estimate.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* PostgreSQL's estimate for a range that appears to be empty. */
#define EMPTY_SELECTIVITY 1.0e-10

static Node *
without_relabel(Node *node)
{
	while (node != NULL && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

Node *
cfd_clause_of(Node *node)
{
	RestrictInfo *info = (RestrictInfo *) node;

	if (!IsA(node, RestrictInfo))
		return node;
	return (Node *) (info->orclause != NULL ? info->orclause : info->clause);
}

/* Whether a clause bounds the column, from above or from below. */
static bool
cfd_ranges_is_bound(Node *node, Node *column, bool above)
{
	OpExpr	   *clause = (OpExpr *) cfd_clause_of(node);
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
	meanings = CFD_MEANINGS(clause->opno);
	if (meanings == NIL)
		return false;
	strategy = CFD_MEANING(linitial(meanings));
	if (strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber)
		return above == first;
	if (strategy == BTGreaterStrategyNumber || strategy == BTGreaterEqualStrategyNumber)
		return above != first;
	return false;
}

/*
 * The AND list that contains the clause with these arguments. Returns NIL if
 * the clause is alone in an arm of an OR.
 */
static const List *
neighbours(const List *clauses, const List *args)
{
	const List *found = NIL;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		Node	   *clause = cfd_clause_of(lfirst(cell));

		if (IsA(clause, OpExpr) && ((OpExpr *) clause)->args == args)
			return clauses;
		if (is_orclause(clause))
		{
			ListCell   *arm;

			foreach(arm, ((BoolExpr *) clause)->args)
			{
				Node	   *both = cfd_clause_of(lfirst(arm));

				if (found == NIL && is_andclause(both))
					found = neighbours(((BoolExpr *) both)->args, args);
			}
		}
	}
	return found;
}

/*
 * The lower bound that goes with the upper bound that has these arguments.
 * Returns NULL unless both exist.
 */
static Node *
lower_bound(const VariableStatData *column, const List *args)
{
	Node	   *lower = NULL;
	bool		found = false;
	ListCell   *cell;

	foreach(cell, column->rel != NULL ? neighbours(column->rel->baserestrictinfo, args) : NIL)
	{
		Node	   *clause = cfd_clause_of(lfirst(cell));

		if (IsA(clause, OpExpr) && ((OpExpr *) clause)->args == args)
			found = cfd_ranges_is_bound(clause, column->var, true);
		else if (lower == NULL && cfd_ranges_is_bound(clause, column->var, false))
			lower = lfirst(cell);
	}
	return found ? lower : NULL;
}

/* Selectivity of the range, computed as PostgreSQL does. */
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
	Node	   *lower;
	Node	   *other;
	bool		first;

	if (!get_restriction_variable(root, args, relid, &column, &other, &first))
		return selectivity;
	lower = lower_bound(&column, args);
	if (lower != NULL)
	{
		Selectivity above = clause_selectivity(root, lower, 0, JOIN_INNER, NULL);

		if (above > 0)
			selectivity = between(selectivity, above, &column) / above;
		CLAMP_PROBABILITY(selectivity);
	}
	ReleaseVariableStats(column);
	return selectivity;
}
