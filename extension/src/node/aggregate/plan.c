/*
 * plan.c
 *	  Converts the path of an aggregation (path.c) into a plan; see
 *	  aggregate.h.
 *
 * Invariant: as in aggregate.h.
 */
#include "postgres.h"

#include "node/aggregate/aggregate.h"
#include "node/aggregate/wanted.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "plan/whole.h"
#include "program/registry.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/guc.h"

bool		cfd_enable_batch_aggregate = true;
bool		cfd_enable_partial_aggregate = true;
int			cfd_aggregate_memory = 256 * 1024;

static const CustomScanMethods scan_methods = {
	.CustomName = "ConfideAggregate",
	.CreateCustomScanState = cfd_aggregate_create_state
};

static const CustomScanMethods partial_methods = {
	.CustomName = "ConfidePartialAggregate",
	.CreateCustomScanState = cfd_partial_create_state
};

/* ---------- the plan ---------- */

typedef struct Translation
{
	List	   *targets;		/* target entries */
	int			varno;
} Translation;

/* Replaces expressions that the target list computes by references to it. */
static Node *
translate(Node *node, Translation *translation)
{
	ListCell   *cell;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Const) && !IsA(node, List) && !IsA(node, TargetEntry))
	{
		foreach(cell, translation->targets)
		{
			TargetEntry *target = lfirst_node(TargetEntry, cell);

			if (equal(target->expr, node))
				return (Node *) makeVarFromTargetEntry(translation->varno, target);
		}
	}
	if (IsA(node, Var) || IsA(node, Aggref))
		elog(ERROR, "confide: a column of an aggregation is not there");
	return expression_tree_mutator(node, translate, translation);
}

static Node *
over(List *targets, int varno, Node *expr)
{
	Translation translation = {targets, varno};
	Node	   *translated = translate(expr, &translation);

	fix_opfuncids(translated);
	return translated;
}

static List *
call_of(Aggref *aggref, List *targets, bool grouped)
{
	Expr	   *counted = cfd_aggregate_counted_condition(aggref, grouped);
	Node	   *argument = NULL;

	if (counted != NULL)
		return list_make4(makeInteger(0), makeInteger(0), NULL, over(targets, OUTER_VAR, (Node *) counted));
	if (aggref->args != NIL)
		argument = over(targets, OUTER_VAR, (Node *) linitial_node(TargetEntry, aggref->args)->expr);
	return list_make4(makeInteger(cfd_aggregate_number(aggref)),
					  makeInteger(aggref->aggdistinct != NIL),
					  argument,
					  over(targets, OUTER_VAR, (Node *) aggref->aggfilter));
}

/*
 * Removes from a scan the quals that the keeper evaluates, but for those before a qual that stays and can fail.
 * The scan then returns unfiltered rows with all columns needed.
 */
static List *
take_quals(PlannerInfo *root, Plan *child, List *exprs)
{
	List	   *taken = NIL;
	List	   *left = NIL;
	bool		guarded = false;

	for (int i = list_length(child->qual) - 1; i >= 0; i--)
	{
		Node	   *qual = list_nth(child->qual, i);

		if (!guarded && cfd_aggregate_is_filter(qual))
			taken = lcons(qual, taken);
		else
		{
			left = lcons(qual, left);
			guarded |= contain_leaked_vars(qual);
		}
	}
	child->qual = left;
	cfd_whole_rows(root, child, pull_var_clause((Node *) list_concat_copy(exprs, taken), PVC_RECURSE_AGGREGATES));
	return taken;
}

static bool
find_params(Node *node, List **params)
{
	if (node == NULL)
		return false;
	if (IsA(node, Integer))
		return false;
	if (IsA(node, Param))
		*params = list_append_unique(*params, node);
	return expression_tree_walker(node, find_params, params);
}

static List *
params_of(Node *node)
{
	List	   *params = NIL;

	find_params(node, &params);
	return params;
}

/*
 * Builds what is sent to the keeper: keys, calls and quals, in terms of the
 * child's output.
 */
static List *
plan_rows(PlannerInfo *root, CustomPath *path, Plan *child)
{
	List	   *keys = linitial(path->custom_private);
	List	   *aggrefs = lsecond(path->custom_private);
	List	   *quals = NIL;
	List	   *calls = NIL;
	ListCell   *cell;

	/*
	 * With quals that refer to no columns there is a Result node above the
	 * scan. The scan then keeps its quals.
	 */
	if (boolVal(list_nth(path->custom_private, 4)) && !IsA(child, Result))
		quals = take_quals(root, child, list_concat_copy(keys, aggrefs));
	foreach(cell, aggrefs)
		calls = lappend(calls, call_of(lfirst_node(Aggref, cell), child->targetlist, keys != NIL));
	return list_make3(over(child->targetlist, OUTER_VAR, (Node *) keys),
					  calls,
					  over(child->targetlist, OUTER_VAR, (Node *) quals));
}

Plan *
cfd_aggregate_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
							 List *clauses, List *children)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *child = linitial(children);
	CfdAggregateStage stage = intVal(list_nth(path->custom_private, 5));
	List	   *outputs = list_concat_copy(linitial(path->custom_private), lsecond(path->custom_private));
	List	   *having = NIL;
	ListCell   *cell;

	(void) rel;
	(void) clauses;
	/*
	 * The final node's rows have the same description as those of the partial
	 * node below Gather.
	 */
	if (stage == CFD_AGG_FINAL)
		scan->custom_private = list_truncate(copyObject(((CustomScan *) outerPlan(child))->custom_private),
											 CFD_AGG_HAVING);
	else
		scan->custom_private = plan_rows(root, path, child);
	if (stage == CFD_AGG_PARTIAL)
		outputs = path->path.pathtarget->exprs;
	foreach(cell, outputs)
		scan->custom_scan_tlist = lappend(scan->custom_scan_tlist,
										  makeTargetEntry(copyObject(lfirst(cell)),
														  list_length(scan->custom_scan_tlist) + 1, NULL, false));
	if (stage != CFD_AGG_PARTIAL)
		having = (List *) over(scan->custom_scan_tlist, INDEX_VAR, lthird(path->custom_private));
	scan->custom_private = lappend(scan->custom_private, having);
	scan->custom_private = list_concat(scan->custom_private, list_copy_tail(path->custom_private, 5));
	scan->custom_private = lappend(scan->custom_private, makeInteger(false));
	/* PostgreSQL finds the parameters that a node depends on in custom_exprs. */
	scan->custom_exprs = params_of((Node *) scan->custom_private);
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = list_nth(path->custom_private, 3);
	scan->custom_plans = children;
	scan->flags = path->flags;
	scan->methods = stage == CFD_AGG_PARTIAL ? &partial_methods : &scan_methods;
	return &scan->scan.plan;
}

/* ---------- results that stay in the keeper ---------- */

bool
cfd_is_aggregate(const Plan *plan)
{
	return IsA(plan, CustomScan) && (((const CustomScan *) plan)->methods == &scan_methods ||
									 ((const CustomScan *) plan)->methods == &partial_methods);
}

/* Whether an expression over results does more than to have the keeper compute NULL from NULL. */
static bool
needs_to_know(Node *node)
{
	const CfdFunction *function;
	List	   *args;
	ListCell   *cell;

	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
		case T_Param:
			return false;
		case T_RelabelType:
			return needs_to_know((Node *) ((RelabelType *) node)->arg);
		case T_FuncExpr:
			function = cfd_function(((FuncExpr *) node)->funcid);
			args = ((FuncExpr *) node)->args;
			break;
		case T_OpExpr:
			function = cfd_function(((OpExpr *) node)->opfuncid);
			args = ((OpExpr *) node)->args;
			break;
		default:
			return true;
	}
	if (function == NULL || (function->call != CFD_CALL_EVAL && function->call != CFD_CALL_UNIT &&
							 function->call != CFD_CALL_TYPMOD))
		return true;
	foreach(cell, args)
	{
		if (needs_to_know(lfirst(cell)))
			return true;
	}
	return false;
}

bool
cfd_aggregate_can_keep(const Plan *plan)
{
	const CustomScan *scan = (const CustomScan *) plan;
	ListCell   *cell;

	if (!cfd_is_aggregate(plan) || plan->qual != NIL || list_length(plan->targetlist) != 1 ||
		intVal(list_nth(scan->custom_private, CFD_AGG_STAGE)) != CFD_AGG_WHOLE ||
		list_nth(scan->custom_private, CFD_AGG_KEYS) != NIL || list_nth(scan->custom_private, CFD_AGG_HAVING) != NIL)
		return false;
	foreach(cell, (List *) list_nth(scan->custom_private, CFD_AGG_CALLS))
	{
		/* A count is told. */
		if (intVal(linitial((List *) lfirst(cell))) == 0)
			return false;
	}
	return !needs_to_know((Node *) linitial_node(TargetEntry, plan->targetlist)->expr);
}

void
cfd_aggregate_keep(Plan *plan)
{
	list_nth_cell(((CustomScan *) plan)->custom_private, CFD_AGG_KEPT)->ptr_value = makeInteger(true);
}

void
cfd_aggregate_init(void)
{
	DefineCustomBoolVariable("confide.enable_batch_aggregate",
							 "Groups and aggregates protected values in the keeper.",
							 NULL,
							 &cfd_enable_batch_aggregate,
							 true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomBoolVariable("confide.enable_partial_aggregate",
							 "Has parallel workers aggregate protected values in the keeper, each its part.",
							 NULL,
							 &cfd_enable_partial_aggregate,
							 true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("confide.batch_aggregate_memory",
							"Memory of the keeper for the groups of one aggregation; more groups take more passes.",
							NULL,
							&cfd_aggregate_memory,
							256 * 1024, 16, MAX_KILOBYTES,
							PGC_USERSET, GUC_UNIT_KB | GUC_EXPLAIN, NULL, NULL, NULL);
	RegisterCustomScanMethods(&scan_methods);
	RegisterCustomScanMethods(&partial_methods);
}
