/*
 * plan.c
 *	  When aggregation is offered in the keeper, and its plan: see aggregate.h.
 *
 * The node is offered if all keys, aggregates and conditions can be done exactly;
 * else nothing is. Where the child is the scan of one table, its protected quals
 * become the aggregation's filter, so that nobody learns which rows pass. Where workers can
 * divide the child's rows there is a parallel path, too.
 *
 * Invariant: as in aggregate.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "order/plain.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "node/aggregate/aggregate.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "plan/cost.h"
#include "plan/whole.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "optimizer/planmain.h"
#include "optimizer/planner.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "program/compile.h"
#include "program/registry.h"
#include "value/types.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* What the keeper takes for a group of a few short keys. */
#define GROUP_BYTES 200

bool		cfd_enable_batch_aggregate = true;
bool		cfd_enable_partial_aggregate = true;
int			cfd_aggregate_memory = 256 * 1024;


/* What is to be grouped and aggregated. */
typedef struct Wanted
{
	PlannerInfo *root;
	List	   *keys;			/* expressions */
	List	   *aggrefs;
	List	   *having;			/* in the keeper */
	bool		protected;		/* something of it is */
	bool		careful;		/* arguments may be evaluated although a row is left out */
	bool		filtered;		/* by protected quals of the scan below */
	bool		in_one_pass;	/* or not at all */
	bool		impossible;
} Wanted;

/* ---------- what can be done ---------- */

bool
cfd_is_raw_type(Oid type)
{
	return type == CHAROID || cfd_plain_key(type);
}

/* Whether a row's value can be had: protected, or equal by its bytes. */
static bool
can_group(Wanted *wanted, Node *expr)
{
	Oid			type = exprType(expr);

	if (contain_subplans(expr) || contain_volatile_functions(expr))
		return false;
	if (cfd_type_code(type) == 0)
		return cfd_is_raw_type(type);
	wanted->protected = true;
	return true;
}

/* Number of an aggregate of the keeper's; 0 for count, -1 for any other. */
static int
aggregate_number(const Aggref *aggref)
{
	HeapTuple	tuple;
	const CfdFunction *step = NULL;

	if (aggref->aggfnoid == F_COUNT_ || aggref->aggfnoid == F_COUNT_ANY)
		return 0;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggref->aggfnoid));
	if (HeapTupleIsValid(tuple))
	{
		step = cfd_function(((Form_pg_aggregate) GETSTRUCT(tuple))->aggtransfn);
		ReleaseSysCache(tuple);
	}
	return step != NULL && step->call == CFD_CALL_AGGREGATE_STEP ? step->signature : -1;
}

/* Of equal values PostgreSQL takes any one, and adds them up in their order. */
static bool
distinct_is_exact(Node *argument)
{
	switch (cfd_type_code(exprType(argument)))
	{
		case CFD_TYPE_FLOAT4:
		case CFD_TYPE_FLOAT8:
		case CFD_TYPE_INTERVAL:
			return false;
		case CFD_TYPE_NUMERIC:
			return exprTypmod(argument) >= 0;
		default:
			return true;
	}
}

static bool
is_int4(Node *expr, int32 value)
{
	return expr != NULL && IsA(expr, Const) && !((Const *) expr)->constisnull &&
		((Const *) expr)->consttype == INT4OID && DatumGetInt32(((Const *) expr)->constvalue) == value;
}

/*
 * The condition of sum(CASE WHEN condition THEN 1 ELSE 0 END), which counts the rows
 * that it holds for, if there are rows; NULL for any other aggregate.
 */
static Expr *
counted_condition(const Aggref *aggref, bool grouped)
{
	CaseExpr   *expr;

	if (!grouped || aggref->aggfnoid != F_SUM_INT4 || aggref->aggdistinct != NIL ||
		aggref->aggorder != NIL || aggref->aggfilter != NULL)
		return NULL;
	expr = (CaseExpr *) linitial_node(TargetEntry, aggref->args)->expr;
	if (!IsA(expr, CaseExpr) || expr->arg != NULL || list_length(expr->args) != 1 ||
		!is_int4((Node *) linitial_node(CaseWhen, expr->args)->result, 1) ||
		!is_int4((Node *) expr->defresult, 0))
		return NULL;
	return linitial_node(CaseWhen, expr->args)->expr;
}

/* Whether rows can be counted that a condition holds for. */
static bool
can_filter(Wanted *wanted, Expr *condition)
{
	if (contain_subplans((Node *) condition) || contain_volatile_functions((Node *) condition))
		return false;
	wanted->careful = true;
	wanted->protected |= cfd_compilable((Node *) condition);
	return true;
}

static bool
can_aggregate(Wanted *wanted, const Aggref *aggref)
{
	int			number = aggregate_number(aggref);
	Expr	   *counted = counted_condition(aggref, wanted->keys != NIL);
	Node	   *argument = NULL;

	if (counted != NULL && aggref->agglevelsup == 0 && aggref->aggsplit == AGGSPLIT_SIMPLE)
		return can_filter(wanted, counted);

	if (number < 0 || aggref->aggkind != AGGKIND_NORMAL || aggref->aggdirectargs != NIL ||
		aggref->aggorder != NIL || aggref->aggvariadic || aggref->agglevelsup != 0 ||
		aggref->aggsplit != AGGSPLIT_SIMPLE || list_length(aggref->args) > 1)
		return false;
	if (aggref->args != NIL)
		argument = (Node *) linitial_node(TargetEntry, aggref->args)->expr;
	if (aggref->aggfilter != NULL && !can_filter(wanted, aggref->aggfilter))
		return false;
	if (argument == NULL)
		return true;
	if (contain_subplans(argument) || contain_volatile_functions(argument))
		return false;
	if (number == 0 && aggref->aggdistinct == NIL && cfd_type_code(exprType(argument)) == 0)
		return true;			/* only whether it is NULL matters */
	if (!can_group(wanted, argument))
		return false;
	return aggref->aggdistinct == NIL || number == 0 || distinct_is_exact(argument);
}

/*
 * Whether a column that is no key has one value in each group, as the table's primary key is
 * among the keys. Not so one of a key's expression whose constants were folded once more here,
 * so that it is not recognised.
 */
static bool
depends_on_keys(const Wanted *wanted, Node *node)
{
	Var		   *var = (Var *) node;
	List	   *constraints = NIL;
	RangeTblEntry *entry;

	if (!IsA(node, Var))
		return false;
	entry = planner_rt_fetch(var->varno, wanted->root);
	return entry->rtekind == RTE_RELATION &&
		check_functional_grouping(entry->relid, var->varno, 0, wanted->keys, &constraints);
}

/* Collects what stands in the target list and in HAVING. */
static bool
cfd_aggregate_plan_collect(Node *node, Wanted *wanted)
{
	if (node == NULL || wanted->impossible)
		return false;
	if (list_member(wanted->keys, node))
		return false;
	if (IsA(node, Aggref))
	{
		if (!can_aggregate(wanted, (Aggref *) node))
			wanted->impossible = true;
		wanted->aggrefs = list_append_unique(wanted->aggrefs, node);
		return false;
	}
	if (IsA(node, Var) || IsA(node, PlaceHolderVar))
	{
		/* As another key it makes no other groups. */
		if (!depends_on_keys(wanted, node) || !can_group(wanted, node))
			wanted->impossible = true;
		wanted->keys = lappend(wanted->keys, node);
		return false;
	}
	if (IsA(node, GroupingFunc))
	{
		wanted->impossible = true;
		return false;
	}
	return expression_tree_walker(node, cfd_aggregate_plan_collect, wanted);
}

/* Keys of GROUP BY or DISTINCT. */
static bool
collect_keys(PlannerInfo *root, List *clauses, Wanted *wanted)
{
	ListCell   *cell;

	foreach(cell, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, cell);
		Node	   *key = get_sortgroupclause_expr(clause, root->processed_tlist);
		TypeCacheEntry *entry = lookup_type_cache(exprType(key), TYPECACHE_EQ_OPR);

		if (clause->eqop != entry->eq_opr || !can_group(wanted, key))
			return false;
		wanted->keys = list_append_unique(wanted->keys, key);
	}
	return true;
}

/* Inputs that are there anyway, whether a row is left out or not. */
static bool
inputs_are_columns(CfdCompiler *compiler, Node *expr)
{
	if (IsA(expr, Var) || IsA(expr, Const) || IsA(expr, Param))
		return true;
	if (cfd_compile(compiler, expr) == NULL)
		return false;
	for (int i = 0; i < compiler->count; i++)
	{
		if (!compiler->inputs[i].constant && !IsA(compiler->inputs[i].expr, Var))
			return false;
	}
	return true;
}

static bool
arguments_are_columns(Wanted *wanted)
{
	CfdCompiler *compiler = cfd_compiler();
	ListCell   *cell;

	foreach(cell, wanted->aggrefs)
	{
		Aggref	   *aggref = lfirst_node(Aggref, cell);

		if (aggref->args != NIL && counted_condition(aggref, wanted->keys != NIL) == NULL &&
			!inputs_are_columns(compiler, (Node *) linitial_node(TargetEntry, aggref->args)->expr))
			return false;
	}
	return true;
}

static bool
keys_are_columns(Wanted *wanted)
{
	CfdCompiler *compiler = cfd_compiler();
	ListCell   *cell;

	foreach(cell, wanted->keys)
	{
		if (!inputs_are_columns(compiler, lfirst(cell)))
			return false;
	}
	return true;
}

/* ---------- the child ---------- */

/* A qual that the keeper evaluates, of columns only. */
static bool
is_filter(Node *qual)
{
	CfdCompiler *compiler = cfd_compiler();

	return !contain_subplans(qual) && !contain_volatile_functions(qual) &&
		cfd_compilable(qual) && inputs_are_columns(compiler, qual);
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

/* What the quals that the keeper evaluates add to a scan's cost. */
static Cost
cost_of_filters(PlannerInfo *root, RelOptInfo *rel, bool *any)
{
	QualCost	cost;
	List	   *filters = NIL;
	ListCell   *cell;

	foreach(cell, rel->baserestrictinfo)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);

		if (!info->pseudoconstant && is_filter((Node *) info->clause))
			filters = lappend(filters, info->clause);
	}
	cost_qual_eval(&cost, filters, root);
	*any = filters != NIL;
	return cost.per_tuple;
}

/*
 * The cheapest scan of a table without its protected quals, and its cost; NULL
 * where the child is something else.
 */
static Path *
scan_path(PlannerInfo *root, RelOptInfo *rel, Wanted *wanted, Cost *cost)
{
	Path	   *best;
	Cost		filters;
	bool		any;
	ListCell   *cell;

	if (!is_plain_scan(root, rel) || !arguments_are_columns(wanted) || !keys_are_columns(wanted))
		return NULL;
	filters = cost_of_filters(root, rel, &any);
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

/* As scan_path, of a scan that workers divide. */
static Path *
divided_scan_path(PlannerInfo *root, RelOptInfo *rel, Wanted *wanted, Cost *cost)
{
	Path	   *path;
	Cost		filters;
	bool		any;
	int			workers;

	if (!is_plain_scan(root, rel) || !arguments_are_columns(wanted) || !keys_are_columns(wanted) ||
		rel->lateral_relids != NULL)
		return NULL;
	workers = compute_parallel_worker(rel, rel->pages, -1, max_parallel_workers_per_gather);
	filters = cost_of_filters(root, rel, &any);
	if (workers <= 0 || (!any && !IsA(without_projection(linitial(rel->partial_pathlist)), Path)))
		return NULL;
	path = create_seqscan_path(root, rel, NULL, workers);
	*cost = path->total_cost - filters * cfd_rows_scanned(root, rel, path);
	return path;
}

/* Whether the child gives all columns that the expressions need. */
static bool
child_gives(Path *child, Wanted *wanted)
{
	List	   *exprs = list_concat_copy(wanted->keys, wanted->aggrefs);
	List	   *needed = pull_var_clause((Node *) exprs, PVC_RECURSE_AGGREGATES | PVC_INCLUDE_PLACEHOLDERS);

	return list_difference(needed, child->pathtarget->exprs) == NIL;
}

/* ---------- the path ---------- */

/*
 * The keeper's answers to the registration and about the results are waited for with nothing to do
 * meanwhile: together as much as so many exchanges. Measured: row at a time 100 rows take as long.
 */
#define WAITS 5

/*
 * Whether row at a time nothing would be declassified either: no protected keys or conditions,
 * columns as arguments.
 */
static bool
tells_nothing_by_row(const Wanted *wanted, const List *quals)
{
	ListCell   *cell;

	if (wanted->filtered || quals != NIL)
		return false;
	foreach(cell, wanted->keys)
	{
		if (cfd_type_code(exprType(lfirst(cell))) != 0)
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

static Plan *plan_aggregate(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
							List *clauses, List *children);

static const CustomPathMethods path_methods = {
	.CustomName = "ConfideAggregate",
	.PlanCustomPath = plan_aggregate
};

static const CustomScanMethods scan_methods = {
	.CustomName = "ConfideAggregate",
	.CreateCustomScanState = cfd_aggregate_create_state
};

static const CustomScanMethods partial_methods = {
	.CustomName = "ConfidePartialAggregate",
	.CreateCustomScanState = cfd_partial_create_state
};

/*
 * Whether a condition on groups is one for the keeper: over keys, results and constants,
 * nothing that PostgreSQL makes of them (a count that is cast, say).
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

/* A path without costs; "rest" is what PostgreSQL evaluates on the groups. */
static CustomPath *
make_path(RelOptInfo *output, PathTarget *target, Path *child, Wanted *wanted, List *rest, bool fused)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = output;
	path->path.pathtarget = target;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
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

/* What the keeper does with rows, or with groups that come from workers. */
static Cost
cost_to_aggregate(const Wanted *wanted, double rows)
{
	return rows * (list_length(wanted->keys) + list_length(wanted->aggrefs) + 1) * cpu_operator_cost * 0.2;
}

static void
add_with_cost(PlannerInfo *root, CustomPath *path, const Wanted *wanted, Cost startup, double groups, List *quals)
{
	PathTarget *target = path->path.pathtarget;

	path->path.rows = clamp_row_est(groups * clauselist_selectivity(root, quals, 0, JOIN_INNER, NULL));
	/* Else it is worth more than time that nobody learns what the rows are. */
	if (tells_nothing_by_row(wanted, quals))
		startup += WAITS * cfd_exchange_cost;
	path->path.startup_cost = startup;
	path->path.total_cost = startup + groups * cpu_tuple_cost + target->cost.startup +
		target->cost.per_tuple * path->path.rows;
	add_path(path->path.parent, &path->path);
}

static double
number_of_groups(PlannerInfo *root, const Wanted *wanted, double rows)
{
	return wanted->keys == NIL ? 1 : estimate_num_groups(root, wanted->keys, Max(rows, 1), NULL, NULL);
}

static bool
can_merge(const Wanted *wanted)
{
	ListCell   *cell;

	foreach(cell, wanted->aggrefs)
	{
		if (lfirst_node(Aggref, cell)->aggdistinct != NIL)
			return false;
	}
	return true;
}

/* A column of what workers give, which nothing computes: it is only to be found again. */
static void
add_placeholder(PathTarget *target, Oid type)
{
	Expr	   *nothing = (Expr *) makeNullConst(type, -1, InvalidOid);

	nothing = (Expr *) makeRelabelType(nothing, type, -1, InvalidOid, COERCE_IMPLICIT_CAST);
	add_column_to_pathtarget(target, nothing, 0);
}

/* What workers give: a number, or rows that found no room (partial.c). */
static PathTarget *
partial_target(void)
{
	PathTarget *target = create_empty_pathtarget();

	add_placeholder(target, INT8OID);
	add_placeholder(target, BYTEAOID);
	target->width = 16;
	return target;
}

/* Workers aggregate what they read, and the leader has their groups merged. */
static void
add_parallel_path(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output, Wanted *wanted, List *quals, List *rest)
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
	path->path.total_cost = path->path.startup_cost + cfd_exchange_cost;
	gather = (Path *) create_gather_path(root, output, &path->path, path->path.pathtarget, NULL, &processes);
	path = make_path(output, output->reltarget, gather, wanted, rest, fused);
	set_stage(path, CFD_AGG_FINAL, 2);
	rows = Min(rows, groups) * processes;
	add_with_cost(root, path, wanted,
				  gather->total_cost + cost_to_aggregate(wanted, rows) + rows * cpu_tuple_cost, groups, quals);
}

static void
add_aggregate_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output, PathTarget *target,
					Wanted *wanted, List *quals)
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
	/* PostgreSQL's own, by tokens, writes what has no room to disk. */
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

/* SELECT DISTINCT makes groups of all that it selects. */
static void
add_distinct_path(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output)
{
	Query	   *parse = root->parse;
	Wanted		wanted = {.root = root,.in_one_pass = true};
	PathTarget *target;

	if (parse->hasDistinctOn || parse->hasTargetSRFs || parse->hasAggs || parse->hasWindowFuncs ||
		parse->groupClause != NIL || parse->groupingSets != NIL || parse->havingQual != NULL)
		return;
	target = input->cheapest_total_path->pathtarget;
	if (collect_keys(root, parse->distinctClause, &wanted) && wanted.keys != NIL &&
		list_difference(target->exprs, wanted.keys) == NIL)
		add_aggregate_paths(root, input, output, target, &wanted, NIL);
}

void
cfd_aggregate_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input, RelOptInfo *output, void *extra)
{
	Query	   *parse = root->parse;
	Wanted		wanted = {.root = root};
	List	   *quals;

	/* Other stages may have no input. */
	if (!cfd_enable_batch_aggregate || (stage != UPPERREL_GROUP_AGG && stage != UPPERREL_DISTINCT) ||
		input->cheapest_total_path == NULL)
		return;
	if (stage == UPPERREL_DISTINCT)
		add_distinct_path(root, input, output);
	if (stage == UPPERREL_DISTINCT || extra == NULL || parse->groupingSets != NIL || parse->hasTargetSRFs)
		return;
	if (!parse->hasAggs && parse->groupClause == NIL)
		return;
	quals = (List *) ((GroupPathExtraData *) extra)->havingQual;
	if (!collect_keys(root, parse->groupClause, &wanted))
		return;
	cfd_aggregate_plan_collect((Node *) output->reltarget->exprs, &wanted);
	cfd_aggregate_plan_collect((Node *) quals, &wanted);
	if (wanted.impossible || (wanted.careful && !arguments_are_columns(&wanted)))
		return;
	add_aggregate_paths(root, input, output, output->reltarget, &wanted, quals);
}

/* ---------- the plan ---------- */

typedef struct Translation
{
	List	   *targets;		/* target entries */
	int			varno;
} Translation;

/* Replaces what the target entries give by references to them. */
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
	Expr	   *counted = counted_condition(aggref, grouped);
	Node	   *argument = NULL;

	if (counted != NULL)
		return list_make4(makeInteger(0), makeInteger(0), NULL, over(targets, OUTER_VAR, (Node *) counted));
	if (aggref->args != NIL)
		argument = over(targets, OUTER_VAR, (Node *) linitial_node(TargetEntry, aggref->args)->expr);
	return list_make4(makeInteger(aggregate_number(aggref)),
					  makeInteger(aggref->aggdistinct != NIL),
					  argument,
					  over(targets, OUTER_VAR, (Node *) aggref->aggfilter));
}

/* Takes from a scan the quals that the keeper evaluates; it gives whole rows then. */
static List *
take_quals(PlannerInfo *root, Plan *child, List *exprs)
{
	List	   *taken = NIL;
	List	   *left = NIL;
	ListCell   *cell;

	foreach(cell, child->qual)
	{
		if (is_filter(lfirst(cell)))
			taken = lappend(taken, lfirst(cell));
		else
			left = lappend(left, lfirst(cell));
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

/* What is sent to the keeper: keys, calls and quals, over what the child gives. */
static List *
plan_rows(PlannerInfo *root, CustomPath *path, Plan *child)
{
	List	   *keys = linitial(path->custom_private);
	List	   *aggrefs = lsecond(path->custom_private);
	List	   *quals = NIL;
	List	   *calls = NIL;
	ListCell   *cell;

	/* Quals without columns put a Result above the scan; the scan then keeps its quals. */
	if (boolVal(list_nth(path->custom_private, 4)) && !IsA(child, Result))
		quals = take_quals(root, child, list_concat_copy(keys, aggrefs));
	foreach(cell, aggrefs)
		calls = lappend(calls, call_of(lfirst_node(Aggref, cell), child->targetlist, keys != NIL));
	return list_make3(over(child->targetlist, OUTER_VAR, (Node *) keys),
					  calls,
					  over(child->targetlist, OUTER_VAR, (Node *) quals));
}

static Plan *
plan_aggregate(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
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
	/* The final one's rows are those that the partial one below Gather describes. */
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
	/* Who needs parameters must say so where PostgreSQL looks. */
	scan->custom_exprs = params_of((Node *) scan->custom_private);
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = list_nth(path->custom_private, 3);
	scan->custom_plans = children;
	scan->flags = path->flags;
	scan->methods = stage == CFD_AGG_PARTIAL ? &partial_methods : &scan_methods;
	return &scan->scan.plan;
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
