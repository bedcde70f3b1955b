/*
 * path.c
 *	  Paths and plans of ConfideScan; see scan.h.
 *
 * Each path of a table with a protected qual gets a variant: the same path
 * without that qual, below our node. Not done for cursors (WHERE CURRENT OF
 * needs the scan's own position), FOR UPDATE, volatile quals (a batch reads
 * ahead), and quals of several security levels.
 *
 * Invariant: quals are evaluated in PostgreSQL's order, as far as that can be
 * observed.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "node/scan/path.h"
#include "node/scan/scan.h"
#include "node/scan/switched.h"
#include "plan/whole.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "plan/quals.h"
#include "plan/planning.h"
#include "program/compile.h"
#include "value/types.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

bool		cfd_enable_batch_scan = true;

/*
 * Cost of starting or rescanning, in round trips. Nothing overlaps with the
 * wait for the first answer (measured with TPC-H Q21: 10 us).
 */
#define BEGIN_ROUND_TRIPS 5

static Plan *plan_scan(PlannerInfo *root, RelOptInfo *rel, struct CustomPath *path,
					   List *tlist, List *clauses, List *children);

static const CustomPathMethods path_methods = {
	.CustomName = CFD_SCAN_NAME,
	.PlanCustomPath = plan_scan,
};

static const CustomScanMethods scan_methods = {
	.CustomName = CFD_SCAN_NAME,
	.CreateCustomScanState = cfd_scan_create_state,
};

/* ---------- which quals ---------- */

/*
 * All quals of a path: those of the table, and join clauses whose other side
 * is a parameter.
 */
static List *
quals_of(RelOptInfo *rel, const Path *path)
{
	if (path->param_info == NULL)
		return rel->baserestrictinfo;
	return list_concat_copy(rel->baserestrictinfo, path->param_info->ppi_clauses);
}

/* Quals of a path that the keeper can evaluate. */
static List *
protected_quals(RelOptInfo *rel, const Path *path)
{
	List	   *quals = NIL;
	ListCell   *cell;

	foreach(cell, quals_of(rel, path))
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);

		if (IsA(path, IndexPath) && is_redundant_with_indexclauses(info, ((IndexPath *) path)->indexclauses))
			continue;
		if (cfd_qual_compiles((Node *) info->clause))
			quals = lappend(quals, info->clause);
	}
	return quals;
}

bool
cfd_may_scan(PlannerInfo *root)
{
	/* A cursor may be positioned on a scan, or scroll backward. */
	const int	cursor = CURSOR_OPT_FAST_PLAN | CURSOR_OPT_SCROLL;

	return cfd_enable_batch_scan && (cfd_planning_options() & cursor) == 0 && root->parse->rowMarks == NIL && OidIsValid(cfd_access_method());
}

bool
cfd_scan_suits(PlannerInfo *root, RelOptInfo *rel)
{
	RangeTblEntry *entry = planner_rt_fetch(rel->relid, root);
	ListCell   *cell;

	if (!cfd_may_scan(root) || entry->rtekind != RTE_RELATION || entry->inh || entry->tablesample != NULL)
		return false;
	foreach(cell, rel->baserestrictinfo)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);

		if (info->pseudoconstant || info->security_level > 0 ||
			contain_volatile_functions((Node *) info->clause))
			return false;
	}
	return true;
}

/* ---------- costs ---------- */

static void
cfd_scan_path_set_costs(PlannerInfo *root, RelOptInfo *rel, CustomPath *custom, Path *child, List *quals)
{
	double		rows = cfd_rows_scanned(root, rel, child);
	QualCost	saved;
	Cost		run;

	cost_qual_eval(&saved, quals, root);
	run = child->total_cost - child->startup_cost - saved.per_tuple * rows;
	run = Max(run, 0) + cfd_batch_cost(rows, quals);
	custom->path.startup_cost = child->startup_cost + BEGIN_ROUND_TRIPS * cfd_round_trip_cost;
	custom->path.total_cost = custom->path.startup_cost + run;
}

/* ---------- paths ---------- */

Path *
cfd_scan_copy_path(const Path *path)
{
	Size		size;
	Path	   *copy;

	switch (path->pathtype)
	{
		case T_SeqScan:
			size = sizeof(Path);
			break;
		case T_IndexScan:
		case T_IndexOnlyScan:
			size = sizeof(IndexPath);
			break;
		case T_BitmapHeapScan:
			size = sizeof(BitmapHeapPath);
			break;
		case T_TidScan:
			size = sizeof(TidPath);
			break;
		case T_TidRangeScan:
			size = sizeof(TidRangePath);
			break;
		default:
			return NULL;
	}
	copy = palloc(size);
	memcpy(copy, path, size);
	return copy;
}

/* Quals of a path, without those that certainly stay with the child. */
static List *
quals_above(RelOptInfo *rel, const Path *path)
{
	List	   *quals = NIL;
	ListCell   *cell;

	foreach(cell, quals_of(rel, path))
	{
		Node	   *qual = (Node *) lfirst_node(RestrictInfo, cell)->clause;

		if (cfd_qual_compiles(qual) || !cfd_harmless(qual))
			quals = lappend(quals, qual);
	}
	return quals;
}

/*
 * The table's own columns in these quals. Columns of other tables are
 * parameters of a join.
 */
static List *
columns_above(RelOptInfo *rel, const Path *path)
{
	List	   *vars = pull_var_clause((Node *) quals_above(rel, path), PVC_RECURSE_PLACEHOLDERS);
	List	   *own = NIL;
	ListCell   *cell;

	foreach(cell, vars)
	{
		if (((Var *) lfirst(cell))->varno == rel->relid)
			own = lappend(own, lfirst(cell));
	}
	return own;
}

static Path *
wrap(PlannerInfo *root, RelOptInfo *rel, Path *path)
{
	List	   *quals = protected_quals(rel, path);
	Path	   *child = quals == NIL ? NULL : cfd_scan_copy_path(path);
	CustomPath *custom;

	if (child == NULL)
		return NULL;
	/* The child must return the columns used by the quals that move up. */
	child->pathtarget = copy_pathtarget(rel->reltarget);
	add_new_columns_to_pathtarget(child->pathtarget, columns_above(rel, path));
	custom = makeNode(CustomPath);
	custom->path.pathtype = T_CustomScan;
	custom->path.parent = rel;
	custom->path.pathtarget = rel->reltarget;
	custom->path.param_info = path->param_info;
	custom->path.parallel_safe = path->parallel_safe;
	custom->path.parallel_workers = path->parallel_workers;
	custom->path.rows = path->rows;
	custom->path.pathkeys = path->pathkeys;
	custom->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	CFD_DISABLED_AS(&custom->path, path);
	custom->custom_paths = list_make1(child);
	custom->methods = &path_methods;
	cfd_scan_path_set_costs(root, rel, custom, path, quals);
	return &custom->path;
}

static void
add_paths(PlannerInfo *root, RelOptInfo *rel, List *paths, void (*add) (RelOptInfo *, Path *))
{
	List	   *made = NIL;
	ListCell   *cell;

	foreach(cell, paths)
		made = lappend(made, wrap(root, rel, lfirst(cell)));
	/* Adding a path changes the list and may free paths in it. */
	foreach(cell, made)
	{
		if (lfirst(cell) != NULL)
			add(rel, lfirst(cell));
	}
}

void
cfd_scan_paths(PlannerInfo *root, RelOptInfo *rel)
{
	if (!cfd_scan_suits(root, rel))
		return;
	/* Paths with a switch have no other protected quals. */
	cfd_switch_paths(root, rel);
	add_paths(root, rel, rel->pathlist, add_path);
	if (rel->consider_parallel)
		add_paths(root, rel, rel->partial_pathlist, add_partial_path);
}

/* ---------- the plan ---------- */

/*
 * Divides the child's quals, which are in order of evaluation: those that stay
 * with the child, those that become the program, and those evaluated after it.
 */
static void
divide_quals(List *all, List **kept, List **moved, List **rest)
{
	ListCell   *cell;

	*kept = *moved = *rest = NIL;
	foreach(cell, all)
	{
		Node	   *qual = lfirst(cell);

		if (*rest == NIL && cfd_qual_compiles(qual))
			*moved = lappend(*moved, qual);
		else if (*rest == NIL && (*moved == NIL || cfd_harmless(qual)))
			*kept = lappend(*kept, qual);
		else
			*rest = lappend(*rest, qual);
	}
	/* Together the quals may exceed the size of a program. */
	while (*moved != NIL && cfd_quals_program(*moved) == NULL)
	{
		*rest = lcons(llast(*moved), *rest);
		*moved = list_delete_last(*moved);
	}
}

/*
 * Columns returned by a child that scans the table itself. Returns NIL if it
 * returns anything but columns.
 */
static List *
columns_of_scan(Plan *child)
{
	List	   *columns = NIL;
	ListCell   *cell;

	if (!IsA(child, SeqScan) && !IsA(child, IndexScan) && !IsA(child, BitmapHeapScan))
		return NIL;
	foreach(cell, child->targetlist)
	{
		Expr	   *expr = lfirst_node(TargetEntry, cell)->expr;

		if (!IsA(expr, Var))
			return NIL;
		columns = lappend(columns, expr);
	}
	return columns;
}

/*
 * Whether the first ORDER BY key is an aggregate. Then no row is returned
 * before all groups are complete.
 */
static bool
orders_by_aggregate(const PlannerInfo *root)
{
	List	   *order = root->parse->sortClause;

	return order != NIL &&
		contain_agg_clause(get_sortgroupclause_expr(linitial_node(SortGroupClause, order), root->parse->targetList));
}

/*
 * Whether rows of these relations may be left unread. Merge joins are not
 * considered.
 */
static bool
may_end_early(const PlannerInfo *root, Relids relids)
{
	for (const PlannerInfo *at = root; at != NULL; at = at->parent_root)
	{
		ListCell   *cell;

		if (at->tuple_fraction > 0 && !orders_by_aggregate(at))
			return true;
		foreach(cell, at->join_info_list)
		{
			SpecialJoinInfo *join = lfirst_node(SpecialJoinInfo, cell);

			if (join->jointype != JOIN_SEMI && join->jointype != JOIN_ANTI)
				continue;
			/*
			 * The side that is searched ends with the first match. Joins below
			 * it do not matter.
			 */
			if (at != root || (bms_overlap(join->syn_righthand, relids) && !bms_overlap(join->syn_lefthand, relids)))
				return true;
		}
	}
	return false;
}

void
cfd_scan_whole_rows(PlannerInfo *root, Plan *child)
{
	List	   *columns = columns_of_scan(child);

	if (columns != NIL)
		cfd_whole_rows(root, child, columns);
}

static Plan *
plan_scan(PlannerInfo *root, RelOptInfo *rel, struct CustomPath *path,
		  List *tlist, List *clauses, List *children)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *child = linitial(children);
	List	   *kept;

	cfd_scan_whole_rows(root, child);
	divide_quals(child->qual, &kept, &scan->custom_exprs, &scan->scan.plan.qual);
	child->qual = kept;
	return cfd_scan_above(root, rel->relids, scan, child, tlist);
}

Plan *
cfd_scan_above(const PlannerInfo *root, Relids relids, CustomScan *scan, Plan *child, List *tlist)
{
	List	   *quals = scan->custom_exprs;
	CfdProgram *program = cfd_quals_program(quals);

	if (quals != NIL && program == NULL)
		elog(ERROR, "confide: quals do not compile any more");
	return cfd_scan_with(root, relids, scan, child, tlist, quals, program, NIL);
}

Plan *
cfd_scan_with(const PlannerInfo *root, Relids relids, CustomScan *scan, Plan *child, List *tlist,
			  List *quals, CfdProgram *program, List *switched)
{
	if (program != NULL)
		scan->custom_exprs = list_make2(quals, cfd_program_inputs(program));
	scan->scan.plan.targetlist = tlist;
	scan->custom_scan_tlist = copyObject(child->targetlist);
	scan->custom_plans = list_make1(child);
	scan->custom_private = list_make2(makeBoolean(may_end_early(root, relids)),
									  program == NULL ? NIL : cfd_program_list(program));
	if (switched != NIL)
		scan->custom_private = lappend(scan->custom_private, switched);
	scan->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	scan->methods = &scan_methods;
	return &scan->scan.plan;
}

Plan *
cfd_scan_over(Plan *child, List *targets, List *quals, const CfdProgram *program)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *plan = &scan->scan.plan;
	ListCell   *cell;

	plan->startup_cost = child->startup_cost;
	plan->total_cost = child->total_cost;
	plan->plan_rows = child->plan_rows;
	plan->plan_width = child->plan_width;
	CFD_DISABLED_AS(plan, child);
	plan->parallel_safe = child->parallel_safe;
	plan->extParam = bms_copy(child->extParam);
	plan->allParam = bms_copy(child->allParam);
	plan->targetlist = targets;
	plan->lefttree = child;
	foreach(cell, child->targetlist)
	{
		TargetEntry *entry = flatCopyTargetEntry(lfirst_node(TargetEntry, cell));

		entry->expr = (Expr *) makeVarFromTargetEntry(OUTER_VAR, entry);
		scan->custom_scan_tlist = lappend(scan->custom_scan_tlist, entry);
	}
	scan->custom_exprs = list_make2(quals, cfd_program_inputs(program));
	scan->custom_private = list_make2(makeBoolean(false), cfd_program_list(program));
	scan->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	scan->methods = &scan_methods;
	return plan;
}

Path *
cfd_scan_below(Path *path)
{
	if (IsA(path, CustomPath) && ((CustomPath *) path)->methods == &path_methods)
		return linitial(((CustomPath *) path)->custom_paths);
	return path;
}

void
cfd_scan_init(void)
{
	DefineCustomBoolVariable("confide.enable_batch_scan",
							 "Enables the planner's use of batched scans of protected columns.",
							 NULL, &cfd_enable_batch_scan, true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	RegisterCustomScanMethods(&scan_methods);
}
