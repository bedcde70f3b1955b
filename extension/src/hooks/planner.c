/*
 * planner.c
 *	  The planner's hooks, each of them installed once: what is done at each, and in
 *	  which order.
 *
 * Around PostgreSQL's planning of a query: paths are added to those of tables, joins and
 * groups; finished plans go through passes, each of which sees what those before it have made.
 *
 * Invariants: each hook first calls whoever was there before; `cfd_planning` is what it was when
 * a planning ends, however it ends.
 */
#include "postgres.h"

#include "hooks/hooks.h"
#include "known/known.h"
#include "node/aggregate/aggregate.h"
#include "node/lookup/lookup.h"
#include "node/promote/promote.h"
#include "node/scan/scan.h"
#include "node/sort/sort.h"
#include "node/tokens/tokens.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "plan/quals.h"
#include "plan/hash_keys.h"
#include "plan/planning.h"

/* What is done to a finished plan. */
typedef struct Pass
{
	const char *name;
	bool		(*wanted) (Query *query);	/* asked before the planner changes the query */
	void		(*apply) (PlannedStmt *statement, int options);
} Pass;

static const Pass passes[] = {
	{"sorts by ranks", cfd_sort_wanted, cfd_sort_pass},
	{"promotion by the batch", cfd_promote_wanted, cfd_promote_pass},
	/* Looks whether plans end early: at sorts that are made by ranks they do not. */
	{"tokens of hash keys", cfd_tokens_wanted, cfd_tokens_pass},
	/* Last: what is below joins stays as it is. */
	{"lookups by the batch", cfd_lookup_wanted, cfd_lookup_pass},
};

/* What is done to a join's paths. */
static const set_join_pathlist_hook_type join_passes[] = {
	/* First: what is not hashed, scans above joins evaluate. */
	cfd_hash_keys_choose,
	cfd_scan_join_paths,
	cfd_tokens_join_paths,
};

static planner_hook_type previous_planner = NULL;
static set_rel_pathlist_hook_type previous_pathlist = NULL;
static set_join_pathlist_hook_type previous_join_pathlist = NULL;
static create_upper_paths_hook_type previous_upper_paths = NULL;

static PlannedStmt *
plan_by_postgres(Query *query, const char *text, int options, ParamListInfo params)
{
	CfdPlanning planning = {.options = options,.context = CurrentMemoryContext};
	CfdPlanning *outer = cfd_planning;
	PlannedStmt *statement;

	if (outer == NULL)
		cfd_known_begin(&cfd_known[CFD_SCOPE_PLANNING]);
	cfd_planning = &planning;
	PG_TRY();
	{
		statement = previous_planner != NULL ? previous_planner(query, text, options, params) :
			standard_planner(query, text, options, params);
	}
	PG_FINALLY();
	{
		cfd_planning = outer;
		if (outer == NULL)
			cfd_known_end(&cfd_known[CFD_SCOPE_PLANNING]);
	}
	PG_END_TRY();
	return statement;
}

static PlannedStmt *
plan_query(Query *query, const char *text, int options, ParamListInfo params)
{
	bool		wanted[lengthof(passes)];
	PlannedStmt *statement;

	for (int i = 0; i < lengthof(passes); i++)
		wanted[i] = passes[i].wanted(query);
	statement = plan_by_postgres(query, text, options, params);
	for (int i = 0; i < lengthof(passes); i++)
	{
		if (!wanted[i])
			continue;
		elog(DEBUG5, "confide: %s", passes[i].name);
		passes[i].apply(statement, options);
	}
	return statement;
}

static void
set_pathlist(PlannerInfo *root, RelOptInfo *rel, Index number, RangeTblEntry *entry)
{
	if (previous_pathlist != NULL)
		previous_pathlist(root, rel, number, entry);
	cfd_scan_paths(root, rel);
}

static void
set_join_pathlist(PlannerInfo *root, RelOptInfo *joined, RelOptInfo *outer, RelOptInfo *inner,
				  JoinType type, JoinPathExtraData *extra)
{
	if (previous_join_pathlist != NULL)
		previous_join_pathlist(root, joined, outer, inner, type, extra);
	for (int i = 0; i < lengthof(join_passes); i++)
		join_passes[i] (root, joined, outer, inner, type, extra);
}

static void
create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input, RelOptInfo *output, void *extra)
{
	if (previous_upper_paths != NULL)
		previous_upper_paths(root, stage, input, output, extra);
	cfd_aggregate_paths(root, stage, input, output, extra);
}

void
cfd_planner_init(void)
{
	cfd_cost_init();
	cfd_scan_init();
	cfd_aggregate_init();
	cfd_sort_init();
	cfd_promote_init();
	cfd_tokens_init();
	cfd_lookup_init();
	previous_planner = planner_hook;
	planner_hook = plan_query;
	previous_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = set_pathlist;
	previous_join_pathlist = set_join_pathlist_hook;
	set_join_pathlist_hook = set_join_pathlist;
	previous_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = create_upper_paths;
}
