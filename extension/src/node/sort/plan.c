/*
 * plan.c
 *	  Inserts ConfideSort into finished plans: a Sort by protected columns
 *	  becomes a CustomScan that has the keeper rank all rows by all of
 *	  their keys.
 *
 * Because this is done on the finished plan, it serves every consumer of
 * sorted rows (ORDER BY, merge joins, grouping, windows, DISTINCT). A Sort
 * with a key that is neither protected nor a plain number or date is left
 * alone if few rows are wanted, since such a key would first be ranked over
 * all rows (order/plain_sort.h). Sorted streams of parallel workers, which the
 * leader would merge row by row, are gathered first and then sorted.
 *
 * Invariant: the node takes the exact place of the Sort, with its output,
 * order, parameters and row identity.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "cell/cell.h"
#include "compat/compat.h"
#include "order/plain.h"
#include "order/ranks.h"
#include "node/sort/sort.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "value/types.h"
#include "utils/lsyscache.h"

/*
 * Describes the sort columns in the form of custom_private. Returns NIL if the
 * Sort is to be left alone.
 */
static List *
cfd_sort_plan_describe(int count, const AttrNumber *columns, const Oid *operators, const Oid *collations,
					   const bool *nulls_first, bool limited)
{
	List	   *parts[CFD_SORT_PARTS] = {NIL};
	bool		protected = false;
	int			words = 0;
	List	   *all = NIL;

	for (int i = 0; i < count; i++)
	{
		Oid			family;
		Oid			type;
		CfdMeaning	strategy;
		uint8		code;
		bool		number;

		if (!get_ordering_op_properties(operators[i], &family, &type, &strategy))
			return NIL;
		code = cfd_family_code(type);
		number = code == 0 && cfd_plain_order(type, family);
		if (code == 0 && !number && limited)
			return NIL;
		protected |= code != 0;
		words += number ? 2 : 1;
		parts[CFD_SORT_COLUMN] = lappend_int(parts[CFD_SORT_COLUMN], columns[i]);
		parts[CFD_SORT_TYPE] = lappend_int(parts[CFD_SORT_TYPE], code);
		parts[CFD_SORT_PLAIN] = lappend_int(parts[CFD_SORT_PLAIN], code != 0 ? 0 : (int) type);
		parts[CFD_SORT_NUMBER] = lappend_int(parts[CFD_SORT_NUMBER], number);
		parts[CFD_SORT_COLLATION] = lappend_int(parts[CFD_SORT_COLLATION], (int) collations[i]);
		parts[CFD_SORT_OPERATOR] = lappend_int(parts[CFD_SORT_OPERATOR], (int) operators[i]);
		parts[CFD_SORT_DESCENDING] = lappend_int(parts[CFD_SORT_DESCENDING],
												 strategy == BTGreaterStrategyNumber);
		parts[CFD_SORT_NULLS_FIRST] = lappend_int(parts[CFD_SORT_NULLS_FIRST], nulls_first[i]);
	}
	if (!protected || words > CFD_RANK_COLUMNS_MAX)
		return NIL;
	for (int i = 0; i < CFD_SORT_PARTS; i++)
		all = lappend(all, parts[i]);
	return all;
}

/* Target list that passes on the columns of the node's own scan tuple. */
static List *
cfd_sort_plan_pass_on(const List *targetlist)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, targetlist)
	{
		TargetEntry *entry = flatCopyTargetEntry(lfirst_node(TargetEntry, cell));

		entry->expr = (Expr *) makeVar(INDEX_VAR, entry->resno, exprType((Node *) entry->expr),
									   exprTypmod((Node *) entry->expr),
									   exprCollation((Node *) entry->expr), 0);
		result = lappend(result, entry);
	}
	return result;
}

/* Makes a node in the place of a plan, above another one. */
static Plan *
make_node(const Plan *place, Plan *below, List *description)
{
	CustomScan *node = makeNode(CustomScan);

	node->scan.plan = *place;
	node->scan.plan.type = T_CustomScan;
	node->scan.plan.lefttree = below;
	node->scan.plan.targetlist = cfd_sort_plan_pass_on(place->targetlist);
	node->scan.plan.parallel_aware = false;
	node->scan.scanrelid = 0;
	node->custom_scan_tlist = place->targetlist;
	node->custom_private = description;
	node->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	node->methods = &cfd_sort_methods;
	return &node->scan.plan;
}

static Plan *
replace_sort(Sort *sort, bool limited)
{
	List	   *description = cfd_sort_plan_describe(sort->numCols, sort->sortColIdx, sort->sortOperators,
													 sort->collations, sort->nullsFirst, limited);

	return description != NIL ? make_node(&sort->plan, outerPlan(sort), description) : &sort->plan;
}

/* Whether a plan returns the columns of the one below unchanged. */
static bool
gives_all(const Plan *plan, const Plan *below)
{
	ListCell   *cell;

	foreach(cell, plan->targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);
		Var		   *var = (Var *) entry->expr;

		if (!IsA(var, Var) || var->varno != OUTER_VAR || var->varattno != entry->resno)
			return false;
	}
	return list_length(plan->targetlist) == list_length(below->targetlist);
}

/* Makes a Result node that evaluates a plan's target list over the plan below. */
static Plan *
cfd_sort_plan_project(const Plan *plan, Plan *below)
{
	Result	   *result = makeNode(Result);

	result->plan = *plan;
	result->plan.type = T_Result;
	result->plan.lefttree = below;
	below->initPlan = NIL;
	return &result->plan;
}

/*
 * Gather Merge compares workers' rows one by one, so gather and then sort. The
 * keys are columns of the sorted rows, some of which may serve only that
 * purpose.
 */
static Plan *
replace_merge(GatherMerge *merge, bool limited)
{
	Sort	   *sort = (Sort *) outerPlan(merge);
	List	   *description;
	Gather	   *gather;
	Plan		place = merge->plan;
	bool		all;
	Plan	   *node;

	if (sort == NULL || !IsA(sort, Sort) || sort->plan.initPlan != NIL)
		return &merge->plan;
	description = cfd_sort_plan_describe(merge->numCols, merge->sortColIdx, merge->sortOperators, merge->collations,
										 merge->nullsFirst, limited);
	if (description == NIL)
		return &merge->plan;
	/*
	 * The resjunk columns are known only to the Gather Merge, if it returns
	 * them at all.
	 */
	all = gives_all(&merge->plan, &sort->plan);
	if (!all)
		place.targetlist = sort->plan.targetlist;
	gather = makeNode(Gather);
	gather->plan = place;
	gather->plan.type = T_Gather;
	gather->plan.initPlan = NIL;
	gather->plan.lefttree = outerPlan(sort);
	gather->num_workers = merge->num_workers;
	gather->rescan_param = merge->rescan_param;
	gather->initParam = merge->initParam;
	/* A Sort's output equals its input, column by column. */
	node = make_node(&place, &gather->plan, description);
	node->plan_node_id = sort->plan.plan_node_id;
	return all ? node : cfd_sort_plan_project(&merge->plan, node);
}

static bool
cfd_sort_plan_is_bound(const Node *node)
{
	return node == NULL || IsA(node, Const) || IsA(node, Param);
}

/* Passes the count and offset of a LIMIT to the sort below it, which evaluates them. */
static void
tell_limit(const Limit *limit, Plan *below)
{
	CustomScan *node = (CustomScan *) below;

	if (!IsA(below, CustomScan) || node->methods != &cfd_sort_methods ||
		limit->limitOption != LIMIT_OPTION_COUNT || limit->limitCount == NULL ||
		!cfd_sort_plan_is_bound(limit->limitCount) || !cfd_sort_plan_is_bound(limit->limitOffset))
		return;
	node->custom_exprs = list_make1(copyObject(limit->limitCount));
	if (limit->limitOffset != NULL)
		node->custom_exprs = lappend(node->custom_exprs, copyObject(limit->limitOffset));
	below->extParam = bms_union(below->extParam, limit->plan.extParam);
	below->allParam = bms_union(below->allParam, limit->plan.allParam);
}

static Plan *cfd_sort_plan_replace(Plan *plan, bool limited);

static void
replace_list(List *plans, bool limited)
{
	ListCell   *cell;

	foreach(cell, plans)
		lfirst(cell) = cfd_sort_plan_replace(lfirst(cell), limited);
}

/* Whether a plan reads all rows of its child before it returns any. */
static bool
reads_all(const Plan *plan)
{
	return IsA(plan, Sort) || IsA(plan, Hash) ||
		(IsA(plan, Agg) && ((const Agg *) plan)->aggstrategy != AGG_SORTED);
}

/*
 * `limited`: below a LIMIT, or in a cursor, so that few rows may be read.
 * PostgreSQL's sort may then need fewer comparisons, one by one, than there
 * are keys to be ranked.
 */
static Plan *
cfd_sort_plan_replace(Plan *plan, bool limited)
{
	if (plan == NULL)
		return NULL;
	check_stack_depth();
	limited |= IsA(plan, Limit) && ((Limit *) plan)->limitCount != NULL;
	if (IsA(plan, GatherMerge))
		plan = replace_merge((GatherMerge *) plan, limited);
	plan->lefttree = cfd_sort_plan_replace(plan->lefttree, limited && !reads_all(plan));
	plan->righttree = cfd_sort_plan_replace(plan->righttree, limited);
	switch (nodeTag(plan))
	{
		case T_Sort:
			return replace_sort((Sort *) plan, limited);
		case T_IncrementalSort:
			return limited ? plan : replace_sort(&((IncrementalSort *) plan)->sort, false);
		case T_Limit:
			tell_limit((Limit *) plan, plan->lefttree);
			break;
		case T_Append:
			replace_list(((Append *) plan)->appendplans, limited);
			break;
		case T_MergeAppend:
			replace_list(((MergeAppend *) plan)->mergeplans, limited);
			break;
		case T_SubqueryScan:
			((SubqueryScan *) plan)->subplan = cfd_sort_plan_replace(((SubqueryScan *) plan)->subplan, limited);
			break;
		case T_CustomScan:
			replace_list(((CustomScan *) plan)->custom_plans, limited);
			break;
		default:
			break;
	}
	return plan;
}

bool
cfd_sort_wanted(Query *query)
{
	return cfd_enable_bulk_sort && OidIsValid(cfd_access_method());
}

void
cfd_sort_pass(PlannedStmt *statement, int options)
{
	statement->planTree = cfd_sort_plan_replace(statement->planTree, (options & CURSOR_OPT_FAST_PLAN) != 0);
	replace_list(statement->subplans, false);
}

void
cfd_sort_init(void)
{
	RegisterCustomScanMethods(&cfd_sort_methods);
}
