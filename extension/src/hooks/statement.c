/*
 * statement.c
 *	  Statements: their nesting depth and kind (value/place.h), and the
 *	  fence at the end of the outermost one, which raises errors of one-way
 *	  operations within that statement.
 *
 * What statements do is changed by hooks/ddl.c only.
 *
 * Invariant: depth and mode are restored when a statement ends, even by an
 * error.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "cell/cell.h"
#include "known/known.h"
#include "order/ranks.h"
#include "value/delivery.h"
#include "result/handover.h"
#include "result/passing.h"
#include "result/results.h"
#include "index/search.h"
#include "ledger/ledger.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "ops/evaluate.h"
#include "session/arena.h"
#include "session/channel.h"
#include "compat/compat.h"
#include "executor/executor.h"
#include "session/pins.h"
#include "session/session.h"
#include "hooks/hooks.h"
#include "hooks/shared.h"
#include "miscadmin.h"
#include "schema/schema.h"
#include "tableam/am.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/backend_status.h"
#include "value/place.h"
#include "value/recorded.h"
#include "value/shown.h"
#include "value/types.h"
#include "wal/policy.h"
#include "utils/syscache.h"

static ExecutorStart_hook_type previous_start = NULL;
static ExecutorRun_hook_type previous_run = NULL;
static ExecutorFinish_hook_type previous_finish = NULL;
static ProcessUtility_hook_type previous_utility = NULL;

static bool
reads_confide_table(const PlannedStmt *plan)
{
	ListCell   *cell;
	Oid			method = cfd_access_method();

	if (!OidIsValid(method))
		return false;
	foreach(cell, plan->rtable)
	{
		RangeTblEntry *entry = lfirst_node(RangeTblEntry, cell);
		HeapTuple	tuple;
		bool		found;

		if (entry->rtekind != RTE_RELATION)
			continue;
		tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(entry->relid));
		if (!HeapTupleIsValid(tuple))
			continue;
		found = ((Form_pg_class) GETSTRUCT(tuple))->relam == method;
		ReleaseSysCache(tuple);
		if (found)
			return true;
	}
	return false;
}

/*
 * Prepares for parallel workers. They join the leader's session, so the
 * leader's channel must be open and the workers announced before they start,
 * and the keeper must have processed whatever they may be passed. The release
 * of an earlier statement's values, which does not wake the keeper, must not
 * be processed after the workers' messages for this statement. Returns whether
 * workers were announced.
 */
static bool
before_parallel(const PlannedStmt *plan)
{
	if (!plan->parallelModeNeeded || IsParallelWorker())
		return false;
	if (!cfd_channel.connected && !reads_confide_table(plan))
		return false;
	cfd_session_announce();
	return true;
}

/*
 * The outermost statement is the one whose query counts, also if a statement
 * that only shows its rows surrounds it.
 */
static void
begin_outermost(uint64 query)
{
	if (cfd_running.outermost == NULL && query != 0)
		cfd_statement_is(query);
}

/*
 * What the statement has used of a budget or a ticket, the keeper at a standby
 * learns from the WAL before the client learns that the statement is complete.
 * A parallel worker's uses are logged by whoever is next.
 */
static void
log_uses(void)
{
	bool		owes = cfd_channel.connected && *(volatile uint64 *) (cfd_channel.link.base + CFD_OWED_OFFSET) != 0;

	if (owes && !IsParallelWorker())
		cfd_log_policies();
}

static void
after_outermost(void)
{
	if (cfd_statement_depth > 0)
		return;
	cfd_known_end_statement();
	cfd_fence_outstanding();
	log_uses();
	cfd_schema_report();
}

static void
executor_start(QueryDesc *query, int eflags)
{
	CfdUncomputed uncomputed;

	if (cfd_statement_depth == 0)
		cfd_owner_executes();
	cfd_flush_dropped();
	begin_outermost(query->plannedstmt->queryId);
	cfd_delivery_statement();
	cfd_recorded_statement(query);
	cfd_ledger_uncompute(query, &uncomputed);
	PG_TRY();
	{
		if (previous_start)
			previous_start(query, eflags);
		else
			standard_ExecutorStart(query, eflags);
	}
	PG_FINALLY();
	{
		cfd_ledger_recompute(&uncomputed);
	}
	PG_END_TRY();
	cfd_ledger_uncompute_end(&uncomputed);
	cfd_known_end_statement();
	cfd_search_plan(query->planstate);
	cfd_shared_values(query);
}

/* Starts a statement. Returns the previous state, to be restored at its end. */
static CfdRunning
begin_running(void *address)
{
	CfdRunning	before = cfd_running;

	if (before.outermost == NULL)
		cfd_running.outermost = address;
	cfd_running.showing = false;
	return before;
}

static void
executor_run(QueryDesc *query, CFD_RUN_PARAMETERS)
{
	CfdMode		mode = cfd_mode;
	DestReceiver *dest = query->dest;
	DestReceiver *shown;
	bool		held_back;
	CfdPassing	passing;
	CfdRunning	running = begin_running(&mode);
	CfdUnchecked *unchecked = cfd_unchecked_insert(query->plannedstmt);
	bool		announced;
	bool		alike = cfd_sort_alike;
	CfdUncomputed uncomputed;

	if (running.outermost == NULL && query->plannedstmt->queryId != 0)
		cfd_statement_is(query->plannedstmt->queryId);
	announced = before_parallel(query->plannedstmt);
	cfd_mode = CFD_MODE_QUERY;
	query->dest = cfd_passing_receiver(&passing, dest, query->tupDesc, cfd_statement_depth == 0);
	shown = query->dest;
	query->dest = IsParallelWorker() ? cfd_handover_receiver(query) : cfd_results_receiver(query);
	held_back = query->dest != shown;
	cfd_ledger_uncompute(query, &uncomputed);
	cfd_statement_depth++;
	cfd_sort_alike = alike || cfd_compares_abbreviations(query->planstate, NULL);
	PG_TRY();
	{
		if (previous_run)
			previous_run(query, CFD_RUN_ARGUMENTS);
		else
			standard_ExecutorRun(query, CFD_RUN_ARGUMENTS);
	}
	PG_FINALLY();
	{
		cfd_statement_depth--;
		cfd_mode = mode;
		cfd_running = running;
		cfd_sort_alike = alike;
		cfd_ledger_recompute(&uncomputed);
		query->dest = dest;
		cfd_unchecked_end(unchecked);
		if (announced)
			cfd_session_withdraw();
		if (held_back)
		{
			cfd_results_end();
			cfd_handover_end();
		}
	}
	PG_END_TRY();
	cfd_ledger_uncompute_end(&uncomputed);
	after_outermost();
}

static void
executor_finish(QueryDesc *query)
{
	CfdMode		mode = cfd_mode;
	CfdRunning	running = begin_running(&mode);

	cfd_mode = CFD_MODE_QUERY;
	cfd_statement_depth++;
	PG_TRY();
	{
		if (previous_finish)
			previous_finish(query);
		else
			standard_ExecutorFinish(query);
		cfd_ledger_erase_end();
	}
	PG_FINALLY();
	{
		cfd_statement_depth--;
		cfd_mode = mode;
		cfd_running = running;
	}
	PG_END_TRY();
	cfd_recorded_end(query);
	after_outermost();
	/* What follows in the same message may be of another statement. */
	if (cfd_running.outermost == NULL)
		cfd_statement_is(0);
}

static CfdMode
mode_of(const Node *statement, ProcessUtilityContext context)
{
	switch (nodeTag(statement))
	{
		case T_AlterDomainStmt:
		case T_AlterPolicyStmt:
		case T_AlterPublicationStmt:
		case T_AlterTableStmt:
		case T_CreateDomainStmt:
		case T_CreateForeignTableStmt:
		case T_CreateFunctionStmt:
		case T_CreatePolicyStmt:
		case T_CreatePublicationStmt:
		case T_CreateStatsStmt:
		case T_CreateStmt:
		case T_CreateTrigStmt:
		case T_IndexStmt:
		case T_RuleStmt:
		case T_ViewStmt:
			return CFD_MODE_CATALOG;
		case T_PrepareStmt:
			return CFD_MODE_PREPARE;
		case T_CopyStmt:
			return ((const CopyStmt *) statement)->is_from ? CFD_MODE_COPY : CFD_MODE_QUERY;
		default:
			return context == PROCESS_UTILITY_SUBCOMMAND ? cfd_mode : CFD_MODE_QUERY;
	}
}

/*
 * An index on protected values is built by a single process. Ranks from
 * several processes cannot be compared, so merging their runs would ask the
 * keeper for each comparison.
 */
static bool
builds_protected_index(const Node *statement)
{
	const RangeVar *name = NULL;
	Oid			relation;
	Oid			table;
	HeapTuple	tuple;
	bool		found;

	if (!cfd_enable_bulk_sort || !OidIsValid(cfd_access_method()))
		return false;
	if (IsA(statement, IndexStmt))
		name = ((const IndexStmt *) statement)->relation;
	else if (IsA(statement, ReindexStmt))
		name = ((const ReindexStmt *) statement)->relation;
	else if (IsA(statement, ClusterStmt))
		name = ((const ClusterStmt *) statement)->relation;
	else if (IsA(statement, AlterTableStmt))
		name = ((const AlterTableStmt *) statement)->relation;
	else
		return false;
	/*
	 * In a whole schema or database, some indexes are likely to be on
	 * protected values.
	 */
	if (name == NULL)
		return true;
	relation = RangeVarGetRelid(name, NoLock, true);
	table = OidIsValid(relation) ? IndexGetRelation(relation, true) : InvalidOid;
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(OidIsValid(table) ? table : relation));
	if (!HeapTupleIsValid(tuple))
		return false;
	found = ((Form_pg_class) GETSTRUCT(tuple))->relam == cfd_access_method();
	ReleaseSysCache(tuple);
	return found;
}

/* As before_parallel, for statements that build indexes with workers. */
static bool
before_maintenance(const Node *statement)
{
	bool		builds = IsA(statement, IndexStmt) || IsA(statement, ReindexStmt) ||
		IsA(statement, ClusterStmt) || IsA(statement, AlterTableStmt);

	if (!builds || max_parallel_maintenance_workers == 0 || !cfd_channel.connected ||
		!IsTransactionState() || builds_protected_index(statement))
		return false;
	cfd_session_announce();
	return true;
}

/*
 * Whether a statement may hold FIDs in memory beyond the end of the
 * transaction that read them. Garbage collection must not free them meanwhile.
 */
static bool
may_outlive_transaction(const Node *statement)
{
	if (IsA(statement, DeclareCursorStmt))
		return (((const DeclareCursorStmt *) statement)->options & CURSOR_OPT_HOLD) != 0;
	return IsA(statement, CallStmt) || IsA(statement, DoStmt);
}

/* To be called after an outermost statement. */
static void
unpin_holder(void)
{
	if (cfd_statement_depth == 0 && cfd_is_holder() && !cfd_arena_held_cursors())
		cfd_unpin_holder();
}

/*
 * PostgreSQL reports the changes of a prepared transaction only as cache
 * invalidations.
 */
static bool
changes_unseen(const Node *statement)
{
	return IsA(statement, TransactionStmt) &&
		((const TransactionStmt *) statement)->kind == TRANS_STMT_COMMIT_PREPARED;
}

/*
 * Whether a statement sends rows to the client without computing anything
 * itself; any computation is done by the executor.
 */
static bool
only_shows(const Node *statement)
{
	if (IsA(statement, CopyStmt))
		return !((const CopyStmt *) statement)->is_from;
	return IsA(statement, FetchStmt) || IsA(statement, ExecuteStmt) || IsA(statement, ExplainStmt);
}

static void
run_utility(PlannedStmt *statement, const char *text, bool read_only,
			ProcessUtilityContext context, ParamListInfo params,
			QueryEnvironment *environment, DestReceiver *receiver, QueryCompletion *completion)
{
	CfdPassing	passing;

	if (IsA(statement->utilityStmt, CallStmt))
		receiver = cfd_passing_receiver(&passing, receiver, NULL, cfd_statement_depth == 1);
	if (previous_utility)
		previous_utility(statement, text, read_only, context, params, environment, receiver, completion);
	else
		standard_ProcessUtility(statement, text, read_only, context, params, environment, receiver, completion);
	cfd_check_added(statement->utilityStmt);
}

static bool
refreshes_concurrently(const Node *statement)
{
	return IsA(statement, RefreshMatViewStmt) && ((const RefreshMatViewStmt *) statement)->concurrent;
}

static bool
discards_all(const Node *statement)
{
	return IsA(statement, DiscardStmt) && ((const DiscardStmt *) statement)->target == DISCARD_ALL;
}

static void
before_utility(const Node *statement)
{
	/* A pooler resets a session that it gives to another client. */
	if (cfd_statement_depth == 0 && !discards_all(statement))
		cfd_owner_executes();
	cfd_kept_utility(statement);
}

static void
after_utility(const Node *statement, const char *text)
{
	if (!discards_all(statement))
		return;
	cfd_kept_discarded();
	cfd_owner_discards(text);
}

static void
process_utility(PlannedStmt *statement, const char *text, bool read_only,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *environment, DestReceiver *receiver, QueryCompletion *completion)
{
	CfdMode		mode = cfd_mode;
	PlannedStmt *adapted;
	bool		outermost_copy;
	CfdUnchecked *unchecked;
	int			workers = max_parallel_maintenance_workers;
	CfdRunning	running = cfd_running;
	bool		building = cfd_cell_building;
	bool		refreshing = cfd_refreshing;
	bool		announced;

	before_utility(statement->utilityStmt);
	cfd_flush_dropped();
	cfd_channel_watch();
	cfd_known_end_statement();
	cfd_ledger_check_utility(statement->utilityStmt);
	adapted = cfd_unchecked_foreign_keys(cfd_adapt_ddl(cfd_soft_adapt(cfd_cells_adapt(statement))));
	announced = before_maintenance(adapted->utilityStmt);
	cfd_mode = mode_of(adapted->utilityStmt, context);
	outermost_copy = cfd_statement_depth == 0 && cfd_mode == CFD_MODE_COPY;
	if (outermost_copy)
		cfd_copy_begin();
	if (IsA(adapted->utilityStmt, CreatedbStmt))
		cfd_check_createdb((const CreatedbStmt *) adapted->utilityStmt);
	if (builds_protected_index(adapted->utilityStmt))
		max_parallel_maintenance_workers = 0;
	if (may_outlive_transaction(adapted->utilityStmt))
		cfd_pin_holder();
	unchecked = cfd_unchecked_copy(adapted->utilityStmt);
	cfd_cell_building = cfd_cells_build_indexes(adapted->utilityStmt);
	if (!refreshing && refreshes_concurrently(adapted->utilityStmt))
		cfd_refresh_begin();
	if (!only_shows(adapted->utilityStmt))
	{
		/* pg_stat_statements takes the identifier away from what it counts itself. */
		begin_outermost(statement->queryId != 0 ? statement->queryId : pgstat_get_my_query_id());
		(void) begin_running(&mode);
	}
	cfd_statement_depth++;
	PG_TRY();
	{
		run_utility(cfd_bodies_adapt(adapted), text, read_only && adapted == statement, context, params,
					environment, receiver, completion);
		if (cfd_refreshing && !refreshing)
			cfd_refresh_check();
		cfd_cells_after(adapted->utilityStmt);
		cfd_soft_after(adapted->utilityStmt);
		cfd_ledger_after_utility(adapted->utilityStmt,
								 IsA(statement->utilityStmt, CreateStmt) &&
								 cfd_ledger_asked((const CreateStmt *) statement->utilityStmt));
	}
	PG_FINALLY();
	{
		cfd_statement_depth--;
		cfd_mode = mode;
		cfd_running = running;
		max_parallel_maintenance_workers = workers;
		cfd_cell_building = building;
		cfd_refreshing = refreshing;
		cfd_known_end(&cfd_known[CFD_SCOPE_BUILD]);
		cfd_unchecked_end(unchecked);
		if (announced)
			cfd_session_withdraw();
		if (outermost_copy)
			cfd_copy_end();
		unpin_holder();
	}
	PG_END_TRY();
	if (GetCommandLogLevel(statement->utilityStmt) == LOGSTMT_DDL)
		cfd_log_grants();
	after_utility(statement->utilityStmt, text);
	if (changes_unseen(adapted->utilityStmt))
		cfd_schema_touch(InvalidOid, InvalidOid, false, false);
	after_outermost();
	if (cfd_running.outermost == NULL)
		cfd_statement_is(0);
}

void
cfd_statement_init(void)
{
	previous_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	previous_run = ExecutorRun_hook;
	ExecutorRun_hook = executor_run;
	previous_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = executor_finish;
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
