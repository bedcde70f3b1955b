/*
 * subplans.c
 *	  Hashed subplans with tokens; see tokens.h.
 *
 * `k NOT IN (SELECT ...)`, and IN in a target list, are subplans whose results
 * PostgreSQL hashes, looking up k for each row. Here the subplan returns
 * tokens instead of values, and a node above the plan whose rows are tested
 * supplies the token of k. That node takes over the test, all quals after it,
 * and the plan's target list. PostgreSQL still handles the subplan's NULLs and
 * decides when it is executed.
 *
 * Limited to subplans with one column that are always tested when reached (not
 * behind OR or in CASE, where the keeper would be asked about too many rows),
 * and not used in subqueries.
 *
 * Invariant: as in tokens.h; quals and expressions are evaluated in
 * PostgreSQL's order.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "node/scan/scan.h"
#include "node/tokens/tokens.h"
#include "optimizer/optimizer.h"
#include "plan/given.h"
#include "utils/fmgroids.h"

typedef CfdTokensPlace Place;

/* ---------- which subplans ---------- */

/* Replaces the subplan's result parameter by the first column of its plan. */
static Node *
with_column(Node *node, void *subplan)
{
	const Param *param = (const Param *) node;

	if (node == NULL)
		return NULL;
	if (IsA(node, Param) && param->paramkind == PARAM_EXEC &&
		param->paramid == linitial_int(((const SubPlan *) subplan)->paramIds))
		return (Node *) makeVar(OUTER_VAR, 1, param->paramtype, param->paramtypmod, param->paramcollid, 0);
	return expression_tree_mutator(node, with_column, subplan);
}

static bool
suits(SubPlan *subplan)
{
	OpExpr	   *test = (OpExpr *) subplan->testexpr;
	Node	   *column;

	if (!subplan->useHashTable || subplan->subLinkType != ANY_SUBLINK || !IsA(test, OpExpr) ||
		list_length(test->args) != 2 || list_length(subplan->paramIds) != 1)
		return false;
	/* Computing an expression could fail for a row that another qual removes. */
	column = linitial(test->args);
	while (IsA(column, RelabelType))
		column = (Node *) ((RelabelType *) column)->arg;
	return IsA(column, Var) && ((Var *) column)->varattno > 0 &&
		cfd_has_tokens(test->opno, linitial(test->args), with_column(lsecond(test->args), subplan));
}

/*
 * Finds a suitable subplan that is evaluated whenever the expression is;
 * otherwise NULL.
 */
static SubPlan *
subplan_of(Node *node)
{
	List	   *args = NIL;
	ListCell   *cell;

	if (node == NULL)
		return NULL;
	check_stack_depth();
	switch (nodeTag(node))
	{
		case T_SubPlan:
			return suits((SubPlan *) node) ? (SubPlan *) node : NULL;
		case T_BoolExpr:
			if (((BoolExpr *) node)->boolop == NOT_EXPR)
				args = ((BoolExpr *) node)->args;
			break;
		case T_BooleanTest:
			return subplan_of((Node *) ((BooleanTest *) node)->arg);
		case T_NullTest:
			return subplan_of((Node *) ((NullTest *) node)->arg);
		case T_FuncExpr:
			args = ((FuncExpr *) node)->args;
			break;
		case T_OpExpr:
			args = ((OpExpr *) node)->args;
			break;
		default:
			break;
	}
	foreach(cell, args)
	{
		SubPlan    *found = subplan_of(lfirst(cell));

		if (found != NULL)
			return found;
	}
	return NULL;
}

static SubPlan *
subplan_of_targets(List *targets)
{
	ListCell   *cell;

	foreach(cell, targets)
	{
		SubPlan    *found = subplan_of((Node *) lfirst_node(TargetEntry, cell)->expr);

		if (found != NULL)
			return found;
	}
	return NULL;
}

bool
cfd_can_give_up(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_SubqueryScan:
		case T_FunctionScan:
		case T_ValuesScan:
		case T_CteScan:
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			return true;
		case T_Result:
			return outerPlan(plan) != NULL;
		case T_CustomScan:
			return ((const CustomScan *) plan)->methods == &cfd_tokens_methods ||
				strcmp(((const CustomScan *) plan)->methods->CustomName, CFD_SCAN_NAME) == 0;
		default:
			return false;
	}
}

/* ---------- the subplan ---------- */

void
cfd_tokens_renumber(Place *place, Plan *plan)
{
	ListCell   *cell;

	if (plan == NULL)
		return;
	check_stack_depth();
	plan->plan_node_id = ++place->last_id;
	cfd_tokens_renumber(place, plan->lefttree);
	cfd_tokens_renumber(place, plan->righttree);
	foreach(cell, cfd_other_children(plan))
		cfd_tokens_renumber(place, lfirst(cell));
}

static Expr *
cfd_subplans_token_of(const Plan *child)
{
	return (Expr *) makeVar(INDEX_VAR, list_length(child->targetlist) + 1, UUIDOID, -1, InvalidOid, 0);
}

/*
 * Makes a subplan look up a token among tokens. Its plan is copied, since
 * other expressions may use the same plan to look up values.
 */
static void
look_up_token(Place *place, SubPlan *subplan, Expr *token, int number)
{
	OpExpr	   *test = (OpExpr *) subplan->testexpr;
	Plan	   *plan = copyObject(list_nth(place->statement->subplans, subplan->plan_id - 1));
	Param	   *result = makeNode(Param);
	TargetEntry *target;
	Plan	   *node;

	cfd_tokens_renumber(place, plan);
	node = cfd_tokens_node(place, plan, list_make1(with_column(lsecond(test->args), subplan)), number, false,
						   CFD_TOKENS_ALL);
	target = linitial_node(TargetEntry, node->targetlist);
	target->expr = cfd_subplans_token_of(plan);
	node->targetlist = list_make1(target);
	place->statement->subplans = lappend(place->statement->subplans, node);

	result->paramkind = PARAM_EXEC;
	result->paramid = linitial_int(subplan->paramIds);
	result->paramtype = UUIDOID;
	result->paramtypmod = -1;
	subplan->plan_id = list_length(place->statement->subplans);
	subplan->firstColType = UUIDOID;
	subplan->firstColTypmod = -1;
	subplan->firstColCollation = InvalidOid;
	test = (OpExpr *) make_opclause(CFD_TOKEN_EQUALITY, BOOLOID, false, token, (Expr *) result, InvalidOid, InvalidOid);
	test->opfuncid = F_UUID_EQ;
	subplan->testexpr = (Node *) test;
}

/* ---------- plan whose rows are tested ---------- */

static int
own_subplan(const Plan *plan)
{
	if (!IsA(plan, CustomScan) || ((const CustomScan *) plan)->methods != &cfd_tokens_methods)
		return 0;
	return intVal(list_nth(((const CustomScan *) plan)->custom_private, CFD_TOKENS_SUBPLAN));
}

/*
 * Makes a node above a plan. The node takes over the plan's target list and
 * the given quals. The first qual, or else the target list, contains the
 * subplan. Each subplan is evaluated by the node that supplies its token, so
 * that the node sees whether the subplan is empty.
 */
static Plan *
node_above(Place *place, Plan *plan, List *quals, bool early)
{
	CfdGiven	columns = {NIL, own_subplan(plan), OUTER_VAR};
	SubPlan    *subplan = quals != NIL ? subplan_of(linitial(quals)) : subplan_of_targets(plan->targetlist);
	int			number = cfd_tokens_number(place);
	Node	   *key;
	List	   *targets;
	Plan	   *node;

	cfd_given_collect((Node *) plan->targetlist, &columns);
	cfd_given_collect((Node *) quals, &columns);
	key = cfd_given_renamed(linitial(((OpExpr *) subplan->testexpr)->args), &columns);
	columns.varno = INDEX_VAR;
	targets = (List *) cfd_given_renamed((Node *) plan->targetlist, &columns);
	quals = (List *) cfd_given_renamed((Node *) quals, &columns);
	subplan = quals != NIL ? subplan_of(linitial(quals)) : subplan_of_targets(targets);
	plan->targetlist = cfd_given_targets(&columns);
	look_up_token(place, subplan, cfd_subplans_token_of(plan), number);
	node = cfd_tokens_node(place, plan, list_make1(key), number, false, early ? CFD_TOKENS_SOME : CFD_TOKENS_MOST);
	list_nth_cell(((CustomScan *) node)->custom_private, CFD_TOKENS_SUBPLAN)->ptr_value = makeInteger(subplan->plan_id);
	node->targetlist = targets;
	node->qual = quals;
	return node;
}

/* Returns the plan below one node per subplan that it evaluates for each row. */
static Plan *
replace_subplans(Place *place, Plan *plan, bool early)
{
	int			at = 0;

	if (!cfd_can_give_up(plan))
		return plan;
	while (at < list_length(plan->qual))
	{
		List	   *kept;

		if (subplan_of(list_nth(plan->qual, at)) == NULL)
		{
			at++;
			continue;
		}
		if (cfd_has_effects(plan))
			return plan;
		kept = list_copy_head(plan->qual, at);
		plan = node_above(place, plan, list_copy_tail(plan->qual, at), early);
		outerPlan(plan)->qual = kept;
		at = 1;
	}
	while (subplan_of_targets(plan->targetlist) != NULL && !cfd_has_effects(plan))
		plan = node_above(place, plan, NIL, early);
	return plan;
}

/* fixed: the plan itself must not be replaced. */
static Plan *
cfd_subplans_replace(Place *place, Plan *plan, bool early, bool fixed)
{
	ListCell   *cell;

	if (plan == NULL)
		return NULL;
	check_stack_depth();
	outerPlan(plan) = cfd_subplans_replace(place, outerPlan(plan), cfd_ends_early(plan, false, early), false);
	/* A merge join returns to marked positions of its inner side. */
	innerPlan(plan) = cfd_subplans_replace(place, innerPlan(plan), cfd_ends_early(plan, true, early), IsA(plan, MergeJoin));
	if (IsA(plan, SubqueryScan))
		((SubqueryScan *) plan)->subplan = cfd_subplans_replace(place, ((SubqueryScan *) plan)->subplan, early, false);
	else
	{
		foreach(cell, cfd_other_children(plan))
			lfirst(cell) = cfd_subplans_replace(place, lfirst(cell), early, false);
	}
	return fixed ? plan : replace_subplans(place, plan, early);
}

Plan *
cfd_tokens_subplans(Place *place, bool early)
{
	return cfd_subplans_replace(place, place->statement->planTree, early, false);
}
