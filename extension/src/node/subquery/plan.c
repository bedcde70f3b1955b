/*
 * plan.c
 *	  Has comparisons with the results of correlated subqueries evaluated by
 *	  the batch; see subquery.h.
 *
 * Invariants: as in subquery.h.
 */
#include "postgres.h"

#include "cell/cell.h"
#include "miscadmin.h"
#include "node/aggregate/aggregate.h"
#include "node/scan/scan.h"
#include "node/subquery/subquery.h"
#include "node/tokens/tokens.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "plan/given.h"
#include "program/compile.h"
#include "utils/guc.h"
#include "value/types.h"

static bool cfd_enable_batch_subquery = true;

typedef struct Place
{
	CfdTokensPlace numbers;
	bool		adds;			/* subplans may be added: PostgreSQL starts them before the plan that uses them */
} Place;

/* ---------- which quals ---------- */

/* Whether the subquery's value depends on the row, and is protected. */
static bool
cfd_subquery_suits(const SubPlan *subplan)
{
	return subplan->subLinkType == EXPR_SUBLINK && subplan->parParam != NIL &&
		cfd_family_code(subplan->firstColType) != 0;
}

static bool
cfd_subquery_find(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) && cfd_subquery_suits((SubPlan *) node))
		return true;
	return expression_tree_walker(node, cfd_subquery_find, context);
}

/*
 * The program of as many of the first quals as possible. A later qual that PostgreSQL would
 * have to evaluate although an earlier one may not hold is left out.
 */
static CfdProgram *
program_of(List *quals, int *count)
{
	for (*count = list_length(quals); *count > 0; (*count)--)
	{
		CfdProgram *program = cfd_compile_quals(cfd_compiler_with_lists(), list_copy_head(quals, *count));

		if (program != NULL)
			return program;
	}
	return NULL;
}

static bool
is_compared(Node *qual)
{
	int			count;

	return cfd_subquery_find(qual, NULL) && program_of(list_make1(qual), &count) != NULL;
}

/* ---------- the node ---------- */

/*
 * Has aggregations in the keeper keep the results of subqueries that only the program sees. Their plans are
 * copied, since other expressions may use the same ones.
 */
static void
keep_results(Place *place, const CfdProgram *program)
{
	PlannedStmt *statement = place->numbers.statement;

	for (int i = 0; place->adds && i < program->compiler->count; i++)
	{
		SubPlan    *subplan = (SubPlan *) program->compiler->inputs[i].expr;
		Plan	   *plan;

		if (!IsA(subplan, SubPlan))
			continue;
		plan = list_nth(statement->subplans, subplan->plan_id - 1);
		if (!cfd_aggregate_can_keep(plan))
			continue;
		plan = copyObject(plan);
		cfd_tokens_renumber(&place->numbers, plan);
		cfd_aggregate_keep(plan);
		statement->subplans = lappend(statement->subplans, plan);
		subplan->plan_id = list_length(statement->subplans);
	}
}

/* Makes a node above a plan that takes over its target list and the given quals. */
static Plan *
scan_over(Place *place, Plan *plan, List *quals)
{
	CfdGiven	columns = {NIL, 0, INDEX_VAR};
	List	   *targets;
	CfdProgram *program;
	Plan	   *node;
	int			count;

	cfd_given_collect((Node *) plan->targetlist, &columns);
	cfd_given_collect((Node *) quals, &columns);
	targets = (List *) cfd_given_renamed((Node *) plan->targetlist, &columns);
	quals = (List *) cfd_given_renamed((Node *) quals, &columns);
	plan->targetlist = cfd_given_targets(&columns);
	program = program_of(quals, &count);
	keep_results(place, program);
	node = cfd_scan_over(plan, targets, list_copy_head(quals, count), program);
	node->qual = list_copy_tail(quals, count);
	node->plan_node_id = ++place->numbers.last_id;
	return node;
}

/* The list in which a plan's quals are that may move above it. */
static List **
quals_of_plan(Plan *plan)
{
	if ((IsA(plan, NestLoop) || IsA(plan, MergeJoin) || IsA(plan, HashJoin)) &&
		((Join *) plan)->jointype == JOIN_INNER && ((Join *) plan)->joinqual != NIL)
		return &((Join *) plan)->joinqual;
	return &plan->qual;
}

/* Number of the first of these quals that compares with a subquery, or that of all quals. */
static int
first_compared(List *quals)
{
	int			at = 0;

	while (at < list_length(quals) && !is_compared(list_nth(quals, at)))
		at++;
	return at;
}

/* Returns the plan below one node for each qual with a subquery. */
static Plan *
move_quals(Place *place, Plan *plan)
{
	while (cfd_can_give_up(plan))
	{
		List	  **quals = quals_of_plan(plan);
		int			at = first_compared(*quals);
		List	   *moved;

		if (at == list_length(*quals))
			return plan;
		moved = list_copy_tail(*quals, at);
		*quals = list_copy_head(*quals, at);
		if (quals != &plan->qual)
		{
			moved = list_concat(moved, plan->qual);
			plan->qual = NIL;
			/* Which inner row is the only one may depend on what moves. */
			((Join *) plan)->inner_unique = false;
		}
		plan = scan_over(place, plan, moved);
	}
	return plan;
}

/* ---------- nested loops ---------- */

/* Whether an expression refers to the outer row by a parameter of the loop. */
static bool
refers_to_outer(Node *node, void *loop)
{
	ListCell   *cell;

	if (node == NULL)
		return false;
	if (!IsA(node, Param))
		return expression_tree_walker(node, refers_to_outer, loop);
	foreach(cell, ((const NestLoop *) loop)->nestParams)
	{
		if (((Param *) node)->paramkind == PARAM_EXEC && ((Param *) node)->paramid == lfirst_node(NestLoopParam, cell)->paramno)
			return true;
	}
	return false;
}

/* Refers to a plan's columns from the join above, and adds those to its target list that it lacks. */
static Node *
from_above(Node *node, void *inner)
{
	Plan	   *plan = inner;
	TargetEntry *entry;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Var))
		return expression_tree_mutator(node, from_above, inner);
	entry = tlist_member((Expr *) node, plan->targetlist);
	if (entry == NULL)
	{
		entry = makeTargetEntry(copyObject((Expr *) node), list_length(plan->targetlist) + 1, NULL, false);
		plan->targetlist = lappend(plan->targetlist, entry);
	}
	return (Node *) makeVarFromTargetEntry(INNER_VAR, entry);
}

/*
 * Moves comparisons from the inner scan of a loop to the loop: the scan finds few rows each time, the loop has all
 * pairs. What the loop evaluates before them must not fail for pairs that they would have removed.
 */
static void
pull_from_inner(NestLoop *loop)
{
	Plan	   *inner = innerPlan(loop);
	int			at;
	ListCell   *cell;

	if (loop->join.jointype != JOIN_INNER || loop->join.plan.qual != NIL || loop->nestParams == NIL ||
		(!IsA(inner, IndexScan) && !IsA(inner, BitmapHeapScan)))
		return;
	at = first_compared(inner->qual);
	if (at == list_length(inner->qual) || refers_to_outer((Node *) list_copy_tail(inner->qual, at), loop))
		return;
	foreach(cell, loop->join.joinqual)
	{
		if (!cfd_harmless(lfirst(cell)))
			return;
	}
	loop->join.joinqual = list_concat(loop->join.joinqual, (List *) from_above((Node *) list_copy_tail(inner->qual, at), inner));
	loop->join.inner_unique = false;
	inner->qual = list_copy_head(inner->qual, at);
}

/* ---------- traversal ---------- */

/* Whether rows of a plan's child may be left unread, given that those of the plan may be (early). */
static bool
leaves_rows(const Plan *plan, bool inner, bool early)
{
	if (IsA(plan, MergeJoin) || IsA(plan, WindowAgg))
		return true;
	if (IsA(plan, ModifyTable) || cfd_is_aggregate(plan))
		return false;
	return cfd_ends_early(plan, inner, early);
}

/* fixed: the plan itself must not be replaced. */
static Plan *
cfd_subquery_replace(Place *place, Plan *plan, bool early, bool fixed)
{
	ListCell   *cell;

	if (plan == NULL)
		return NULL;
	check_stack_depth();
	if (IsA(plan, NestLoop) && !early && !fixed)
		pull_from_inner((NestLoop *) plan);
	outerPlan(plan) = cfd_subquery_replace(place, outerPlan(plan), leaves_rows(plan, false, early), false);
	innerPlan(plan) = cfd_subquery_replace(place, innerPlan(plan), leaves_rows(plan, true, early), IsA(plan, MergeJoin));
	if (IsA(plan, SubqueryScan))
		((SubqueryScan *) plan)->subplan = cfd_subquery_replace(place, ((SubqueryScan *) plan)->subplan, early, false);
	else
	{
		foreach(cell, cfd_other_children(plan))
			lfirst(cell) = cfd_subquery_replace(place, lfirst(cell), leaves_rows(plan, false, early), false);
	}
	return early || fixed ? plan : move_quals(place, plan);
}

/* Whether a query, or one within it, locks rows. */
static bool
locks_rows(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return ((Query *) node)->rowMarks != NIL || query_tree_walker((Query *) node, locks_rows, context, 0);
	return expression_tree_walker(node, locks_rows, context);
}

/* Whether there may be a subquery that is not in FROM. */
static bool
has_subqueries(const Query *query)
{
	ListCell   *cell;

	if (query->hasSubLinks || query->cteList != NIL)
		return true;
	foreach(cell, query->rtable)
	{
		if (lfirst_node(RangeTblEntry, cell)->rtekind == RTE_SUBQUERY)
			return true;
	}
	return false;
}

bool
cfd_subquery_wanted(Query *query)
{
	return cfd_enable_batch_subquery && has_subqueries(query) && OidIsValid(cfd_access_method()) &&
		!contain_volatile_functions((Node *) query) && !locks_rows((Node *) query, NULL);
}

void
cfd_subquery_pass(PlannedStmt *statement, int options)
{
	const int	cursor = CURSOR_OPT_SCROLL | CURSOR_OPT_NO_SCROLL | CURSOR_OPT_HOLD | CURSOR_OPT_FAST_PLAN;
	Place		place = {.adds = true};
	int			subplans = list_length(statement->subplans);

	if (subplans == 0 || (options & cursor) != 0)
		return;
	place.numbers = cfd_tokens_place(statement);
	statement->planTree = cfd_subquery_replace(&place, statement->planTree, false, false);
	place.adds = false;
	/* Subplans may be read for a single row only. */
	for (int i = 0; i < subplans; i++)
	{
		Plan	   *plan = cfd_subquery_replace(&place, list_nth(statement->subplans, i), true, false);

		list_nth_cell(statement->subplans, i)->ptr_value = plan;
	}
}

void
cfd_subquery_init(void)
{
	DefineCustomBoolVariable("confide.enable_batch_subquery",
							 "Compares protected values with the results of correlated subqueries by the batch.",
							 NULL,
							 &cfd_enable_batch_subquery,
							 true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
}
