/*
 * switch_path.c
 *	  Paths and plans of scans with a switch; see switched.h.
 *
 * If all protected quals of a table are on encodings, its paths get a variant
 * with the switch above. It takes the place of the path, because which of them
 * is chosen is a matter of the setting, not of the planner's costs; its cost is
 * that of the side which is expected to evaluate. Parallel paths, and inner sides of
 * nested loops by an index, remain as they are: PostgreSQL evaluates.
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
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "plan/quals.h"
#include "plan/twins.h"
#include "program/compile.h"
#include "value/types.h"

static Plan *plan_switched(PlannerInfo *root, RelOptInfo *rel, struct CustomPath *path,
						   List *tlist, List *clauses, List *children);

static const CustomPathMethods switch_path_methods = {
	.CustomName = CFD_SCAN_NAME,
	.PlanCustomPath = plan_switched,
};

/* ---------- which quals ---------- */

/* The quals that have twins, in order; the twins, and what a row takes. */
typedef struct Divided
{
	List	   *moved;
	List	   *twins;
	List	   *kept;
	List	   *rest;
	CfdWork		work;
} Divided;

static Node *
twin_of(Node *qual, CfdWork *work)
{
	CfdWork		more = *work;
	Node	   *twin = cfd_soft_twin(qual, &more);

	if (twin != NULL)
		*work = more;
	return twin;
}

/* As in path.c: what is before the first one that moves stays with the child. */
static void
divide(List *quals, Divided *out)
{
	ListCell   *cell;

	memset(out, 0, sizeof(*out));
	foreach(cell, quals)
	{
		Node	   *qual = lfirst(cell);
		Node	   *twin = out->rest == NIL ? twin_of(qual, &out->work) : NULL;

		if (twin != NULL)
		{
			out->moved = lappend(out->moved, qual);
			out->twins = lappend(out->twins, twin);
		}
		else if (out->rest == NIL && (out->moved == NIL || cfd_harmless(qual)))
			out->kept = lappend(out->kept, qual);
		else
			out->rest = lappend(out->rest, qual);
	}
}

/* The clauses that a path evaluates for each row. False: it is not for a switch. */
static bool
clauses_of(RelOptInfo *rel, const Path *path, List **clauses)
{
	ListCell   *cell;

	*clauses = NIL;
	if (path->param_info != NULL)
		return false;
	foreach(cell, rel->baserestrictinfo)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);

		if (IsA(path, IndexPath) && is_redundant_with_indexclauses(info, ((IndexPath *) path)->indexclauses))
			continue;
		if (cfd_qual_compiles((Node *) info->clause))
			return false;
		*clauses = lappend(*clauses, info->clause);
	}
	return true;
}

/* ---------- paths ---------- */

static Path *
switched(PlannerInfo *root, RelOptInfo *rel, Path *path)
{
	List	   *clauses;
	Divided		divided;
	double		rows;
	Cost		cost;
	QualCost	saved;
	Path	   *child;
	CustomPath *custom;

	if (!clauses_of(rel, path, &clauses))
		return NULL;
	divide(clauses, &divided);
	rows = cfd_rows_scanned(root, rel, path);
	if (divided.moved == NIL || cfd_quals_program(divided.twins) == NULL ||
		!cfd_switch_plan(&divided.work, rows, &cost))
		return NULL;
	child = cfd_scan_copy_path(path);
	if (child == NULL)
		return NULL;
	child->pathtarget = copy_pathtarget(rel->reltarget);
	add_new_columns_to_pathtarget(child->pathtarget, pull_var_clause((Node *) clauses, PVC_RECURSE_PLACEHOLDERS));
	custom = makeNode(CustomPath);
	custom->path.pathtype = T_CustomScan;
	custom->path.parent = rel;
	custom->path.pathtarget = rel->reltarget;
	custom->path.rows = path->rows;
	custom->path.pathkeys = path->pathkeys;
	custom->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	CFD_DISABLED_AS(&custom->path, path);
	custom->custom_paths = list_make1(child);
	custom->methods = &switch_path_methods;
	cost_qual_eval(&saved, divided.moved, root);
	custom->path.startup_cost = path->startup_cost;
	custom->path.total_cost = path->startup_cost + cost +
		Max(path->total_cost - path->startup_cost - saved.per_tuple * rows, 0);
	return &custom->path;
}

void
cfd_switch_paths(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *before = rel->pathlist;
	List	   *after = NIL;
	bool		any = false;
	ListCell   *cell;

	if (cfd_soft_mode == CFD_SOFT_SOFTWARE || !cfd_scan_suits(root, rel))
		return;
	foreach(cell, before)
	{
		Path	   *made = switched(root, rel, lfirst(cell));

		any = any || made != NULL;
		after = lappend(after, made != NULL ? made : lfirst(cell));
	}
	if (!any)
		return;
	rel->pathlist = NIL;
	foreach(cell, after)
		add_path(rel, lfirst(cell));
	/* Parallel workers have no switch, so the setting would be ignored. */
	if (cfd_soft_mode == CFD_SOFT_KEEPER)
		rel->partial_pathlist = NIL;
}

/* ---------- the plan ---------- */

static Plan *
plan_switched(PlannerInfo *root, RelOptInfo *rel, struct CustomPath *path,
			  List *tlist, List *clauses, List *children)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *child = linitial(children);
	CfdProgram *program;
	Divided		divided;

	cfd_scan_whole_rows(root, child);
	divide(child->qual, &divided);
	child->qual = divided.kept;
	scan->scan.plan.qual = divided.rest;
	program = cfd_quals_program(divided.twins);
	if (program == NULL)
		elog(ERROR, "confide: quals do not compile any more");
	return cfd_scan_with(root, rel->relids, scan, child, tlist, divided.moved, program,
						 cfd_work_list(&divided.work));
}

List *
cfd_switch_private(const CustomScan *scan)
{
	return list_length(scan->custom_private) > 2 ? lthird(scan->custom_private) : NIL;
}
