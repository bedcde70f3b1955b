/*
 * planner.c
 *	  Installs each planner hook once, and defines what is done at each of
 *	  them and in which order.
 *
 * While PostgreSQL plans a query, paths are added to those of base relations,
 * joins and upper relations. Finished plans go through a list of passes, each
 * of which sees the results of the previous ones.
 *
 * Invariants: each hook first calls the previously installed one;
 * `cfd_planning` is restored when a planning ends, even by an error.
 */
#include "postgres.h"

#include "hooks/hooks.h"
#include "known/known.h"
#include "node/aggregate/aggregate.h"
#include "node/lookup/lookup.h"
#include "node/promote/promote.h"
#include "node/scan/scan.h"
#include "node/sort/sort.h"
#include "node/subquery/subquery.h"
#include "node/tokens/tokens.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/plancat.h"
#include "plan/constants.h"
#include "plan/quals.h"
#include "plan/hash_keys.h"
#include "plan/planning.h"
#include "session/channel.h"
#include "session/pins.h"
#include "utils/inval.h"
#include "value/shown.h"

/* A pass over finished plans. */
typedef struct Pass
{
	const char *name;
	bool		(*wanted) (Query *query);	/* called before the planner changes the query */
	void		(*apply) (PlannedStmt *statement, int options);
} Pass;

static const Pass passes[] = {
	{"sorts by ranks", cfd_sort_wanted, cfd_sort_pass},
	{"promotion by the batch", cfd_promote_wanted, cfd_promote_pass},
	/* These need the sorts: a plan does not end early below a sort by ranks. */
	{"comparisons with subqueries", cfd_subquery_wanted, cfd_subquery_pass},
	{"tokens of hash keys", cfd_tokens_wanted, cfd_tokens_pass},
	/* Must be last: later passes must not change what is below joins. */
	{"lookups by the batch", cfd_lookup_wanted, cfd_lookup_pass},
};

/* Hooks for the paths of a join. */
static const set_join_pathlist_hook_type join_passes[] = {
	/* Must be first: scans above joins evaluate the keys that are not hashed. */
	cfd_hash_keys_choose,
	cfd_scan_join_paths,
	cfd_tokens_join_paths,
};

static planner_hook_type previous_planner = NULL;
static get_relation_info_hook_type previous_relation_info = NULL;
static set_rel_pathlist_hook_type previous_pathlist = NULL;
static set_join_pathlist_hook_type previous_join_pathlist = NULL;
static create_upper_paths_hook_type previous_upper_paths = NULL;

static PlannedStmt *
plan_by_postgres(Query *query, const char *text, int options, ParamListInfo params)
{
	CfdPlanning planning = {.options = options,.context = CurrentMemoryContext};
	CfdPlanning *outer = cfd_planning;
	PlannedStmt *statement;

	cfd_planning = &planning;
	PG_TRY();
	{
		statement = previous_planner != NULL ? previous_planner(query, text, options, params) :
			standard_planner(query, text, options, params);
	}
	PG_FINALLY();
	{
		cfd_planning = outer;
	}
	PG_END_TRY();
	return statement;
}

/*
 * Plans a query that is not part of another one's planning.
 *
 * PostgreSQL looks for changes of statistics when it locks a table, but not if the transaction
 * has locked it before. Statistics that it remembers may have been replaced since, and the values
 * in them swept. So it looks here, and a collection waits for the end of the planning.
 */
static PlannedStmt *
plan_outermost(Query *query, const char *text, int options, ParamListInfo params)
{
	PlannedStmt *volatile statement;

	cfd_known_begin(&cfd_known[CFD_SCOPE_PLANNING]);
	if (cfd_channel.query == 0 && cfd_running.outermost == NULL)
		cfd_statement_is(query->queryId);
	PG_TRY();
	{
		cfd_pin_planner();
		AcceptInvalidationMessages();
		statement = plan_by_postgres(query, text, options, params);
	}
	PG_FINALLY();
	{
		cfd_unpin_planner();
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
	statement = cfd_planning == NULL ? plan_outermost(query, text, options, params) :
		plan_by_postgres(query, text, options, params);
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
relation_info(PlannerInfo *root, Oid relation, bool parent, RelOptInfo *rel)
{
	if (previous_relation_info != NULL)
		previous_relation_info(root, relation, parent, rel);
	cfd_match_constants(root, rel);
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
	cfd_subquery_init();
	cfd_tokens_init();
	cfd_lookup_init();
	previous_planner = planner_hook;
	planner_hook = plan_query;
	previous_relation_info = get_relation_info_hook;
	get_relation_info_hook = relation_info;
	previous_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = set_pathlist;
	previous_join_pathlist = set_join_pathlist_hook;
	set_join_pathlist_hook = set_join_pathlist;
	previous_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = create_upper_paths;
}
