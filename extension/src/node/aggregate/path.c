/*
 * path.c
 *	  Paths of aggregations in the keeper, and their costs; see
 *	  aggregate.h.
 *
 * If the child scans a single table, its protected quals become the
 * aggregation's filter, so that nobody learns which rows pass. If workers can
 * divide the child's rows, there is a parallel path as well.
 *
 * Invariants: as in aggregate.h; a qual that the scan keeps and that can fail is not evaluated for rows that an
 * earlier qual would have removed (WHERE k <> 0 AND id / k > 1).
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "cell/cell.h"
#include "compat/compat.h"
#include "node/aggregate/aggregate.h"
#include "node/aggregate/rivals.h"
#include "node/aggregate/wanted.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "plan/quals.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "value/types.h"
#include "utils/selfuncs.h"

/* The keeper's memory for a group with a few short keys, in bytes. */
#define GROUP_BYTES 200

/* ---------- the child ---------- */

/* Whether the qual can be evaluated by the keeper and refers to columns only. */
bool
cfd_aggregate_is_filter(Node *qual)
{
	CfdCompiler *compiler = cfd_compiler();

	return !contain_subplans(qual) && !contain_volatile_functions(qual) &&
		cfd_compilable(qual) && cfd_aggregate_inputs_are_columns(compiler, qual);
}

static bool
is_plain_scan(PlannerInfo *root, RelOptInfo *rel)
{
	RangeTblEntry *entry;

	if (rel->reloptkind != RELOPT_BASEREL || rel->rtekind != RTE_RELATION || root->qual_security_level > 0)
		return false;
	entry = planner_rt_fetch(rel->relid, root);
	return !entry->inh && entry->tablesample == NULL && entry->relkind == RELKIND_RELATION;
}

static Path *
without_projection(Path *path)
{
	while (IsA(path, ProjectionPath))
		path = ((ProjectionPath *) path)->subpath;
	return path;
}

/*
 * Whether a qual that the scan keeps must not be evaluated without the others: it can fail and, being protected, may
 * come after them by its cost.
 */
static bool
is_guarded(Node *qual)
{
	return cfd_qual_compiles(qual) && contain_leaked_vars(qual);
}

/*
 * Cost per row of the quals that the keeper evaluates. Returns false if the scan must keep all of them.
 */
static bool
cost_of_filters(PlannerInfo *root, RelOptInfo *rel, bool *any, Cost *per_row)
{
	QualCost	cost;
	List	   *filters = NIL;
	bool		guarded = false;
	ListCell   *cell;

	foreach(cell, rel->baserestrictinfo)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);

		if (info->pseudoconstant)
			continue;
		if (cfd_aggregate_is_filter((Node *) info->clause))
			filters = lappend(filters, info->clause);
		else if (is_guarded((Node *) info->clause))
			guarded = true;
	}
	cost_qual_eval(&cost, filters, root);
	*any = filters != NIL;
	*per_row = cost.per_tuple;
	return filters == NIL || !guarded;
}

/*
 * The cheapest scan of a table without its protected quals, and its cost.
 * Returns NULL if the child is something else.
 */
static Path *
scan_path(PlannerInfo *root, RelOptInfo *rel, CfdWanted *wanted, Cost *cost)
{
	Path	   *best;
	Cost		filters;
	bool		any;
	ListCell   *cell;

	if (!is_plain_scan(root, rel) || !cfd_aggregate_arguments_are_columns(wanted) || !cfd_aggregate_keys_are_columns(wanted))
		return NULL;
	if (!cost_of_filters(root, rel, &any, &filters))
		return NULL;
	if (!any && (rel->cheapest_total_path == NULL || !IsA(without_projection(rel->cheapest_total_path), Path)))
		return NULL;
	best = create_seqscan_path(root, rel, rel->lateral_relids, 0);
	*cost = best->total_cost - filters * rel->tuples;
	foreach(cell, rel->pathlist)
	{
		Path	   *path = without_projection(lfirst(cell));

		if ((path->pathtype == T_IndexScan || path->pathtype == T_BitmapHeapScan) &&
			path->param_info == NULL && path->total_cost < *cost)
		{
			best = path;
			*cost = path->total_cost;
		}
	}
	wanted->filtered = any;
	wanted->protected |= any;
	return best;
}

/* As scan_path, for a scan divided among workers. */
static Path *
divided_scan_path(PlannerInfo *root, RelOptInfo *rel, CfdWanted *wanted, Cost *cost)
{
	Path	   *path;
	Cost		filters;
	bool		any;
	int			workers;

	if (!is_plain_scan(root, rel) || !cfd_aggregate_arguments_are_columns(wanted) || !cfd_aggregate_keys_are_columns(wanted) ||
		rel->lateral_relids != NULL)
		return NULL;
	workers = compute_parallel_worker(rel, rel->pages, -1, max_parallel_workers_per_gather);
	if (workers <= 0 || !cost_of_filters(root, rel, &any, &filters) ||
		(!any && !IsA(without_projection(linitial(rel->partial_pathlist)), Path)))
		return NULL;
	path = create_seqscan_path(root, rel, NULL, workers);
	*cost = path->total_cost - filters * cfd_rows_scanned(root, rel, path);
	return path;
}

/* Whether an expression needs a column that is neither among those given nor within one of them. */
static bool
needs_more(Node *node, List *given)
{
	if (node == NULL || list_member(given, node))
		return false;
	if (IsA(node, Var) || IsA(node, PlaceHolderVar))
		return true;
	return expression_tree_walker(node, needs_more, given);
}

/*
 * Whether the child returns all that the expressions need. The rows that a Gather returns have keys that the workers
 * have computed, but not the columns that they have computed them from.
 */
static bool
child_gives(Path *child, CfdWanted *wanted)
{
	List	   *given = child->pathtarget->exprs;

	return !needs_more((Node *) wanted->keys, given) && !needs_more((Node *) wanted->aggrefs, given);
}

/* ---------- the path ---------- */

/*
 * Cost of waiting for the answers about the registration and the results, in
 * round trips. Nothing overlaps with these waits. Measured: they take as long
 * as 100 rows processed singly.
 */
#define WAITS 5

/*
 * Whether row-at-a-time aggregation would not declassify anything either:
 * there are no protected keys or conditions, and arguments are columns.
 */
static bool
tells_nothing_by_row(const CfdWanted *wanted, const List *quals)
{
	ListCell   *cell;

	if (wanted->filtered || quals != NIL)
		return false;
	foreach(cell, wanted->keys)
	{
		if (cfd_family_code(exprType(lfirst(cell))) != 0)
			return false;
	}
	foreach(cell, wanted->aggrefs)
	{
		Aggref	   *aggref = lfirst_node(Aggref, cell);

		if (aggref->aggdistinct != NIL || aggref->aggfilter != NULL ||
			(aggref->args != NIL && !IsA(linitial_node(TargetEntry, aggref->args)->expr, Var)))
			return false;
	}
	return true;
}

static const CustomPathMethods path_methods = {
	.CustomName = "ConfideAggregate",
	.PlanCustomPath = cfd_aggregate_plan
};

/*
 * Whether the keeper can evaluate a condition on groups: it refers to keys,
 * results and constants only, and not to anything that PostgreSQL computes
 * from them (such as a cast count).
 */
static bool
is_having(Node *qual, const List *keys)
{
	CfdCompiler *compiler = cfd_compiler();

	if (contain_subplans(qual) || contain_volatile_functions(qual) ||
		cfd_compile_quals(compiler, list_make1(qual)) == NULL)
		return false;
	for (int i = 0; i < compiler->count; i++)
	{
		const CfdInput *input = &compiler->inputs[i];

		if (!input->constant && !IsA(input->expr, Aggref) && !list_member(keys, input->expr))
			return false;
	}
	return true;
}

/*
 * Makes a path without costs. "rest" has the quals that PostgreSQL evaluates
 * on the groups.
 */
static CustomPath *
make_path(RelOptInfo *output, PathTarget *target, Path *child, CfdWanted *wanted, List *rest, bool fused)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = output;
	path->path.pathtarget = target;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	CFD_DISABLED_AS(&path->path, child);
	path->custom_paths = list_make1(child);
	path->custom_private = list_make5(wanted->keys, wanted->aggrefs, wanted->having, rest, makeBoolean(fused));
	path->methods = &path_methods;
	return path;
}

static void
set_stage(CustomPath *path, CfdAggregateStage stage, int share)
{
	path->custom_private = lappend(path->custom_private, makeInteger(stage));
	path->custom_private = lappend(path->custom_private, makeInteger(share));
}

/* The keeper's cost of aggregating rows, or groups from workers. */
static Cost
cost_to_aggregate(const CfdWanted *wanted, double rows)
{
	return rows * (list_length(wanted->keys) + list_length(wanted->aggrefs) + 1) * cpu_operator_cost * 0.2;
}

static void
add_with_cost(PlannerInfo *root, CustomPath *path, const CfdWanted *wanted, Cost startup, double groups, List *quals)
{
	PathTarget *target = path->path.pathtarget;

	path->path.rows = clamp_row_est(groups * clauselist_selectivity(root, quals, 0, JOIN_INNER, NULL));
	/* Otherwise, not disclosing anything about the rows is worth more than time. */
	if (tells_nothing_by_row(wanted, quals))
		startup += WAITS * cfd_round_trip_cost;
	path->path.startup_cost = startup;
	path->path.total_cost = startup + groups * cpu_tuple_cost + target->cost.startup +
		target->cost.per_tuple * path->path.rows;
	add_path(path->path.parent, &path->path);
}

static double
number_of_groups(PlannerInfo *root, const CfdWanted *wanted, double rows)
{
	return wanted->keys == NIL ? 1 : estimate_num_groups(root, wanted->keys, Max(rows, 1), NULL, NULL);
}

static bool
can_merge(const CfdWanted *wanted)
{
	ListCell   *cell;

	foreach(cell, wanted->aggrefs)
	{
		if (lfirst_node(Aggref, cell)->aggdistinct != NIL)
			return false;
	}
	return true;
}

/*
 * Adds a column to the workers' output that nothing computes; it only serves
 * to be found again.
 */
static void
add_placeholder(PathTarget *target, Oid type)
{
	Expr	   *nothing = (Expr *) makeNullConst(type, -1, InvalidOid);

	nothing = (Expr *) makeRelabelType(nothing, type, -1, InvalidOid, COERCE_IMPLICIT_CAST);
	add_column_to_pathtarget(target, nothing, 0);
}

/* The output of workers: a number, or rows that did not fit (partial.c). */
static PathTarget *
partial_target(void)
{
	PathTarget *target = create_empty_pathtarget();

	add_placeholder(target, INT8OID);
	add_placeholder(target, BYTEAOID);
	target->width = 16;
	return target;
}

/*
 * Adds a path in which workers aggregate the rows they read and the leader has
 * their groups merged.
 */
static void
add_parallel_path(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output, CfdWanted *wanted, List *quals, List *rest)
{
	Cost		child_cost = 0;
	Path	   *child = divided_scan_path(root, input, wanted, &child_cost);
	bool		fused = child != NULL;
	CustomPath *path;
	Path	   *gather;
	double		processes;
	double		rows;
	double		groups;

	if (!fused)
	{
		child = without_projection(linitial(input->partial_pathlist));
		child_cost = child->total_cost;
		if (!child_gives(child, wanted))
			return;
	}
	processes = child->parallel_workers + 1;
	rows = child->rows;
	groups = number_of_groups(root, wanted, rows * processes);
	path = make_path(output, partial_target(), child, wanted, NIL, fused);
	set_stage(path, CFD_AGG_PARTIAL, 2 * processes);
	path->path.rows = 1;
	path->path.parallel_safe = true;
	path->path.parallel_workers = child->parallel_workers;
	path->path.startup_cost = child_cost + cost_to_aggregate(wanted, rows);
	path->path.total_cost = path->path.startup_cost + cfd_round_trip_cost;
	gather = (Path *) create_gather_path(root, output, &path->path, path->path.pathtarget, NULL, &processes);
	path = make_path(output, output->reltarget, gather, wanted, rest, fused);
	set_stage(path, CFD_AGG_FINAL, 2);
	rows = Min(rows, groups) * processes;
	add_with_cost(root, path, wanted,
				  gather->total_cost + cost_to_aggregate(wanted, rows) + rows * cpu_tuple_cost, groups, quals);
}

static void
add_aggregate_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output, PathTarget *target,
					CfdWanted *wanted, List *quals)
{
	CustomPath *path;
	Cost		child_cost = 0;
	Path	   *child = scan_path(root, input, wanted, &child_cost);
	bool		fused = child != NULL;
	double		groups;
	List	   *rest;
	ListCell   *cell;

	if (!fused)
	{
		child = without_projection(input->cheapest_total_path);
		child_cost = child->total_cost;
		if (!child_gives(child, wanted))
			return;
	}
	if (!wanted->protected || child->param_info != NULL)
		return;
	foreach(cell, quals)
	{
		if (is_having(lfirst(cell), wanted->keys))
			wanted->having = lappend(wanted->having, lfirst(cell));
	}
	groups = number_of_groups(root, wanted, child->rows);
	/* PostgreSQL's own aggregation, with tokens, spills to disk if necessary. */
	if (wanted->in_one_pass && groups * GROUP_BYTES > cfd_aggregate_memory * 1024.0)
		return;
	rest = list_difference_ptr(quals, wanted->having);
	path = make_path(output, target, child, wanted, rest, fused);
	set_stage(path, CFD_AGG_WHOLE, 1);
	add_with_cost(root, path, wanted, child_cost + cost_to_aggregate(wanted, child->rows), groups, quals);
	if (cfd_enable_partial_aggregate && !wanted->in_one_pass && output->consider_parallel &&
		input->partial_pathlist != NIL && can_merge(wanted))
		add_parallel_path(root, input, output, wanted, quals, rest);
}

/* SELECT DISTINCT groups by its whole target list. */
static void
add_distinct_path(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output)
{
	Query	   *parse = root->parse;
	CfdWanted	wanted = {.root = root,.in_one_pass = true};
	PathTarget *target;

	if (parse->hasDistinctOn || parse->hasTargetSRFs || parse->hasAggs || parse->hasWindowFuncs ||
		parse->groupClause != NIL || parse->groupingSets != NIL || parse->havingQual != NULL)
		return;
	target = input->cheapest_total_path->pathtarget;
	if (cfd_aggregate_collect_keys(root, parse->distinctClause, &wanted) && wanted.keys != NIL &&
		list_difference(target->exprs, wanted.keys) == NIL)
		add_aggregate_paths(root, input, output, target, &wanted, NIL);
}

void
cfd_aggregate_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input, RelOptInfo *output, void *extra)
{
	Query	   *parse = root->parse;
	CfdWanted	wanted = {.root = root};
	List	   *quals;

	/* Other stages may have no input. */
	if (!cfd_enable_batch_aggregate || (stage != UPPERREL_GROUP_AGG && stage != UPPERREL_DISTINCT) ||
		input->cheapest_total_path == NULL)
		return;
	cfd_aggregate_price_rivals(root, stage == UPPERREL_DISTINCT ? parse->distinctClause : parse->groupClause, output);
	if (stage == UPPERREL_DISTINCT)
		add_distinct_path(root, input, output);
	if (stage == UPPERREL_DISTINCT || extra == NULL || parse->groupingSets != NIL || parse->hasTargetSRFs)
		return;
	if (!parse->hasAggs && parse->groupClause == NIL)
		return;
	quals = (List *) ((GroupPathExtraData *) extra)->havingQual;
	if (!cfd_aggregate_collect_keys(root, parse->groupClause, &wanted))
		return;
	cfd_aggregate_collect((Node *) output->reltarget->exprs, &wanted);
	cfd_aggregate_collect((Node *) quals, &wanted);
	if (wanted.impossible || (wanted.careful && !cfd_aggregate_arguments_are_columns(&wanted)))
		return;
	add_aggregate_paths(root, input, output, output->reltarget, &wanted, quals);
}
