/*
 * join.c
 *	  Evaluation of protected quals above a join; see scan.h.
 *
 * A nested loop scans the inner table's index once per outer row and finds few
 * rows each time. A batched scan there would cost one round trip per outer
 * row. Therefore the inner table's protected quals, and those of the join,
 * move above the loop, where pairs arrive by the thousand. The order of
 * evaluation does not matter as long as the other quals cannot fail, and the
 * pairs are the same ones for which the quals would have been evaluated
 * singly. A semijoin or antijoin would have left an outer row at its first
 * match; here all pairs are read (pairs.c), and the keeper skips those after
 * the first match. Other outer joins are left alone.
 *
 * Quals of an inner hash join other than its hash clauses are moved above the
 * join as well. If the outer rows belong to a worker (a partial path), all of
 * this happens in the worker.
 *
 * Invariant: as in scan.h.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "node/scan/path.h"
#include "node/scan/scan.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "plan/quals.h"
#include "program/compile.h"

/*
 * For small numbers of pairs, a batch is costed at most at this fraction of
 * single evaluations.
 */
#define EACH 0.9

/* How the quals at and below a join are divided. */
typedef struct Quals
{
	List	   *moved;			/* RestrictInfos to be evaluated above the join */
	List	   *saved;			/* those that the inner scan would have evaluated */
	List	   *at_join;		/* RestrictInfos that stay at the join */
	bool		impossible;
} Quals;

/*
 * Whether a qual moves above the join. A qual that stays must not fail for
 * pairs that it would not have seen.
 */
static bool
moves(Quals *quals, RestrictInfo *info)
{
	Node	   *clause = (Node *) info->clause;

	if (info->pseudoconstant || info->security_level > 0 || contain_volatile_functions(clause))
		quals->impossible = true;
	else if (cfd_qual_compiles(clause))
	{
		quals->moved = lappend(quals->moved, info);
		return true;
	}
	else if (!cfd_harmless(clause))
		quals->impossible = true;
	return false;
}

static void
divide_inner(Quals *quals, List *infos, const IndexPath *search)
{
	ListCell   *cell;

	foreach(cell, infos)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);

		if (!is_redundant_with_indexclauses(info, search->indexclauses) && moves(quals, info))
			quals->saved = lappend(quals->saved, info);
	}
}

/* `known` are the relations whose columns the inner scan has: its own, and those that parameterize it. */
static void
divide_joined(Quals *quals, List *infos, Relids inner, Relids known)
{
	ListCell   *cell;

	foreach(cell, infos)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);

		/* Those movable into the inner scan were handled there. */
		if (!join_clause_is_movable_into(info, inner, known) && !moves(quals, info))
			quals->at_join = lappend(quals->at_join, info);
	}
}

/*
 * The target with the columns of the moved quals added, as far as they belong
 * to `relids`.
 */
static PathTarget *
target_with(PathTarget *target, List *moved, Relids relids)
{
	PathTarget *copy = copy_pathtarget(target);
	List	   *vars = pull_var_clause((Node *) extract_actual_clauses(moved, false), PVC_RECURSE_PLACEHOLDERS);
	ListCell   *cell;

	foreach(cell, vars)
	{
		if (bms_is_member(((Var *) lfirst(cell))->varno, relids))
			add_new_columns_to_pathtarget(copy, list_make1(lfirst(cell)));
	}
	return copy;
}

/* Copies the inner scan without the quals that move. */
static Path *
inner_path(PlannerInfo *root, RelOptInfo *rel, const Path *path, Quals *quals)
{
	Path	   *copy = cfd_scan_copy_path(path);
	ParamPathInfo *info = palloc(sizeof(ParamPathInfo));
	QualCost	saved;

	*info = *path->param_info;
	info->ppi_clauses = list_difference_ptr(info->ppi_clauses, quals->moved);
	copy->param_info = info;
	copy->rows = info->ppi_rows = cfd_rows_scanned(root, rel, copy);
	copy->pathtarget = target_with(rel->reltarget, quals->moved, rel->relids);
	cost_qual_eval(&saved, quals->saved, root);
	copy->total_cost -= saved.per_tuple * copy->rows;
	copy->total_cost = Max(copy->total_cost, copy->startup_cost);
	return copy;
}

/*
 * Creates the loop. Pairs after a row's first match are read as well; most of
 * them are on the same pages.
 */
static NestPath *
nested_loop(PlannerInfo *root, RelOptInfo *joined, JoinType type, Path *outer, Path *inner, Quals *quals,
			JoinPathExtraData *extra)
{
	JoinPathExtraData own = *extra;
	JoinCostWorkspace workspace;
	NestPath   *path;

	/* Uniqueness of the inner row may depend on quals that move. */
	own.inner_unique = false;
	own.restrictlist = quals->at_join;
	initial_cost_nestloop(root, &workspace, type, outer, inner, &own);
	path = create_nestloop_path(root, joined, type, &workspace, &own, outer, inner, quals->at_join,
								build_join_pathkeys(root, joined, type, outer->pathkeys), NULL);
	path->jpath.path.rows = clamp_row_est(outer->rows * inner->rows);
	if (type != JOIN_INNER)
		path->jpath.path.total_cost += path->jpath.path.rows * (cpu_tuple_cost + cpu_index_tuple_cost);
	path->jpath.path.pathtarget = target_with(joined->reltarget, quals->moved, joined->relids);
	return path;
}

static Plan *
plan_join(PlannerInfo *root, RelOptInfo *rel, struct CustomPath *path, List *tlist, List *clauses, List *children)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *child = linitial(children);

	(void) clauses;
	scan->custom_exprs = extract_actual_clauses(path->custom_private, false);
	if (IsA(child, NestLoop))
		innerPlan(child)->qual = list_difference(innerPlan(child)->qual, scan->custom_exprs);
	return cfd_scan_above(root, rel->relids, scan, child, tlist);
}

static const CustomPathMethods path_methods = {
	.CustomName = "ConfideScan",
	.PlanCustomPath = plan_join,
};

/*
 * Cost of a batched scan above a join, in addition to the join. Evaluating
 * single pairs would cost a round trip each, so the batch must never look more
 * expensive, although for a single pair it is just as slow. One pair is what
 * the planner estimates when the statistics do not help, and there may be
 * hundreds.
 */
static Cost
cost_above(PlannerInfo *root, const Path *join, List *clauses, Cost *startup)
{
	Cost		batch = cfd_batch_cost(join->rows, clauses);
	QualCost	each;

	cost_qual_eval(&each, clauses, root);
	if (batch <= EACH * each.per_tuple * join->rows)
	{
		*startup = cfd_round_trip_cost;
		return batch;
	}
	/*
	 * With a startup cost, it could lose against a path of nearly the same
	 * total cost.
	 */
	*startup = 0;
	return EACH * each.per_tuple * join->rows;
}

/*
 * Makes a batched scan above a join, for the fraction "part" of the rows.
 * Returns NULL if the quals cannot be compiled.
 */
static Path *
scan_above(PlannerInfo *root, RelOptInfo *joined, Path *join, List *moved, double part)
{
	List	   *clauses = extract_actual_clauses(moved, false);
	CustomPath *custom;
	Cost		startup;
	Cost		cost;

	if (cfd_quals_program(clauses) == NULL)
		return NULL;
	custom = makeNode(CustomPath);
	custom->path.pathtype = T_CustomScan;
	custom->path.parent = joined;
	custom->path.pathtarget = joined->reltarget;
	custom->path.parallel_safe = join->parallel_safe;
	custom->path.parallel_workers = join->parallel_workers;
	custom->path.rows = clamp_row_est(joined->rows * part);
	custom->path.pathkeys = join->pathkeys;
	cost = cost_above(root, join, clauses, &startup);
	custom->path.startup_cost = join->startup_cost + startup;
	custom->path.total_cost = join->total_cost + cost;
	custom->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	CFD_DISABLED_AS(&custom->path, join);
	custom->custom_paths = list_make1(join);
	custom->custom_private = moved;
	custom->methods = &path_methods;
	return &custom->path;
}

/* Fraction of a relation's rows that a path returns; below 1 if workers divide them. */
static double
part_of(const RelOptInfo *rel, const Path *path)
{
	return path->parallel_workers > 0 && rel->rows > 0 ? Min(path->rows / rel->rows, 1) : 1;
}

/* Adds the path. This may free other paths. */
static void
add_to(RelOptInfo *joined, Path *path)
{
	if (path->parallel_workers > 0)
		add_partial_path(joined, path);
	else
		add_path(joined, path);
}

/* ---------- nested loops ---------- */

/* The one search of an index by which a scan finds its rows; NULL if it has none, or several. */
static const IndexPath *
search_of(const Path *path)
{
	if (path->pathtype == T_IndexScan)
		return (const IndexPath *) path;
	if (path->pathtype == T_BitmapHeapScan && IsA(((const BitmapHeapPath *) path)->bitmapqual, IndexPath))
		return (const IndexPath *) ((const BitmapHeapPath *) path)->bitmapqual;
	return NULL;
}

static void
add_loop(PlannerInfo *root, RelOptInfo *joined, JoinType type, Path *outer, RelOptInfo *inner, const Path *scan,
		 JoinPathExtraData *extra)
{
	const IndexPath *search = search_of(scan);
	Quals		quals = {0};
	Path	   *loop;
	Path	   *path;

	divide_inner(&quals, inner->baserestrictinfo, search);
	divide_inner(&quals, scan->param_info->ppi_clauses, search);
	divide_joined(&quals, extra->restrictlist, inner->relids, bms_union(inner->relids, PATH_REQ_OUTER(scan)));
	if (quals.impossible || quals.moved == NIL)
		return;
	loop = &nested_loop(root, joined, type, outer, inner_path(root, inner, scan, &quals), &quals, extra)->jpath.path;
	path = scan_above(root, joined, loop, quals.moved, part_of(outer->parent, outer));
	if (path != NULL)
		add_to(joined, path);
}

/* Whether all quals are about pairs of rows, and only plain columns are returned. */
static bool
is_suited(JoinType type, RelOptInfo *joined, List *infos)
{
	ListCell   *cell;

	if (type == JOIN_INNER)
		return true;
	if (type != JOIN_SEMI && type != JOIN_ANTI)
		return false;
	foreach(cell, infos)
	{
		/* This qual is evaluated after the antijoin. */
		if (type == JOIN_ANTI && RINFO_IS_PUSHED_DOWN(lfirst_node(RestrictInfo, cell), joined->relids))
			return false;
	}
	foreach(cell, joined->reltarget->exprs)
	{
		if (!IsA(lfirst(cell), Var))
			return false;
	}
	return true;
}

/*
 * Adds all nested loops over an outer path. A partial outer path takes
 * parallel-safe inner paths only.
 */
static void
add_loops_from(PlannerInfo *root, RelOptInfo *joined, Path *outer, RelOptInfo *inner, JoinType type,
			   JoinPathExtraData *extra)
{
	ListCell   *cell;

	foreach(cell, inner->pathlist)
	{
		Path	   *path = cfd_scan_below(lfirst(cell));

		if (search_of(path) != NULL && path->param_info != NULL &&
			bms_is_subset(PATH_REQ_OUTER(path), outer->parent->relids) &&
			(outer->parallel_workers == 0 || path->parallel_safe))
			add_loop(root, joined, type, outer, inner, path, extra);
	}
}

static void
add_loops(PlannerInfo *root, RelOptInfo *joined, RelOptInfo *outer, RelOptInfo *inner, JoinType type,
		  JoinPathExtraData *extra)
{
	Path	   *from = outer->cheapest_total_path;

	if (from != NULL && from->param_info == NULL)
		add_loops_from(root, joined, from, inner, type, extra);
	if (joined->consider_parallel && outer->partial_pathlist != NIL)
		add_loops_from(root, joined, linitial(outer->partial_pathlist), inner, type, extra);
}

/* ---------- hash joins ---------- */

/* Estimated number of pairs with equal hash keys. */
static double
pairs_found(PlannerInfo *root, const HashPath *path, SpecialJoinInfo *join)
{
	double		selectivity = clauselist_selectivity(root, path->path_hashclauses, 0, JOIN_INNER, join);
	double		inner = path->jpath.path.parallel_aware ? path->inner_rows_total : path->jpath.innerjoinpath->rows;

	return clamp_row_est(path->jpath.outerjoinpath->rows * inner * selectivity);
}

/*
 * Makes a batched scan above a copy of the hash join without the quals that
 * move. Returns NULL if none moves.
 */
static Path *
above_hash_join(PlannerInfo *root, RelOptInfo *joined, const HashPath *path, JoinPathExtraData *extra)
{
	Quals		quals = {0};
	HashPath   *copy;
	QualCost	saved;
	ListCell   *cell;

	foreach(cell, path->jpath.joinrestrictinfo)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);

		if (list_member_ptr(path->path_hashclauses, info) || !moves(&quals, info))
			quals.at_join = lappend(quals.at_join, info);
	}
	if (quals.impossible || quals.moved == NIL)
		return NULL;
	copy = palloc(sizeof(HashPath));
	*copy = *path;
	/* Uniqueness of the inner row may depend on quals that move. */
	copy->jpath.inner_unique = false;
	copy->jpath.joinrestrictinfo = quals.at_join;
	copy->jpath.path.rows = pairs_found(root, path, extra->sjinfo);
	copy->jpath.path.pathtarget = target_with(joined->reltarget, quals.moved, joined->relids);
	cost_qual_eval(&saved, quals.moved, root);
	copy->jpath.path.total_cost -= saved.per_tuple * copy->jpath.path.rows;
	copy->jpath.path.total_cost = Max(copy->jpath.path.total_cost, copy->jpath.path.startup_cost);
	return scan_above(root, joined, &copy->jpath.path, quals.moved, part_of(joined, &path->jpath.path));
}

static void
add_hash_joins(PlannerInfo *root, RelOptInfo *joined, RelOptInfo *outer, RelOptInfo *inner, const List *known,
			   JoinPathExtraData *extra)
{
	List	   *paths = NIL;
	ListCell   *cell;

	foreach(cell, known)
	{
		HashPath   *path = lfirst(cell);

		if (IsA(path, HashPath) && path->jpath.jointype == JOIN_INNER && path->jpath.path.param_info == NULL &&
			path->jpath.outerjoinpath->parent == outer && path->jpath.innerjoinpath->parent == inner)
			paths = lappend(paths, above_hash_join(root, joined, path, extra));
	}
	foreach(cell, paths)
	{
		if (lfirst(cell) != NULL)
			add_to(joined, lfirst(cell));
	}
}

/* ---------- all joins ---------- */

void
cfd_scan_join_paths(PlannerInfo *root, RelOptInfo *joined, RelOptInfo *outer, RelOptInfo *inner,
					JoinType type, JoinPathExtraData *extra)
{
	if (!is_suited(type, joined, extra->restrictlist) || joined->reloptkind != RELOPT_JOINREL ||
		joined->lateral_relids != NULL || !cfd_may_scan(root))
		return;
	if (inner->reloptkind == RELOPT_BASEREL && cfd_scan_suits(root, inner))
		add_loops(root, joined, outer, inner, type, extra);
	if (type == JOIN_INNER)
	{
		add_hash_joins(root, joined, outer, inner, joined->pathlist, extra);
		add_hash_joins(root, joined, outer, inner, joined->partial_pathlist, extra);
	}
}
