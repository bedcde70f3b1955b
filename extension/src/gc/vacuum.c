/*
 * vacuum.c
 *	  Entry points of garbage collection: VACUUM (manual and autovacuum)
 *	  and the functions in schema confide, including those that show its
 *	  progress.
 *
 * Invariant: VACUUM does not fail when the keeper is unreachable.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "session/channel.h"
#include "commands/vacuum.h"
#include "compat/compat.h"
#include "fmgr.h"
#include "funcapi.h"
#include "gc/collect.h"
#include "session/pins.h"
#include "gc/target.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "value/promote.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

/* ---------- leftovers of dropped tables and databases ---------- */

/*
 * Whether a catalog has a row with this OID, or may have one: rows inserted or
 * deleted by transactions in progress count as existing.
 */
static bool
may_exist(Oid class, Oid index, AttrNumber column, Oid oid)
{
	Relation	catalog = table_open(class, AccessShareLock);
	SnapshotData dirty;
	ScanKeyData key;
	SysScanDesc scan;
	bool		found;

	InitDirtySnapshot(dirty);
	ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(oid));
	scan = systable_beginscan(catalog, index, true, &dirty, 1, &key);
	found = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

uint32 *
cfd_listed_in_keeper(Oid database, int *count)
{
	CfdWireGarbageList body = {.database = database};
	CfdReadGarbageListAnswer read;
	const char *answer;
	uint32		length;
	uint32	   *copy;

	answer = cfd_call(CFD_KIND_GARBAGE_LIST, &body, sizeof(body), NULL, 0, &length);
	CFD_DECODE(garbage_list_answer, answer, length, &read);
	copy = palloc(Max(length, 1));
	memcpy(copy, read.oids, length);
	*count = read.oids_count;
	return copy;
}

typedef void (*OrphanSink) (void *arg, Oid relation, const CfdCollected *collected);

/*
 * Collects relations that do not exist in any transaction, except those that
 * somebody else is collecting. The first check may miss a relation: it may
 * find the old row of pg_class through the index before the new row of a
 * TRUNCATE that commits at this moment is visible. Once we hold the lock,
 * nobody can create or drop the relation, and the second check, with a
 * snapshot, sees it if it exists.
 *
 * What postpones the collection of one, after a wait, postpones that of all
 * others: so it ends there.
 */
static void
collect_orphans(OrphanSink sink, void *arg)
{
	int			count;
	uint32	   *relations = cfd_listed_in_keeper(MyDatabaseId, &count);
	bool		postponed = false;

	for (int i = 0; i < count && !postponed; i++)
	{
		CfdCollected collected;
		bool		exists;

		CHECK_FOR_INTERRUPTS();
		if (may_exist(RelationRelationId, ClassOidIndexId, Anum_pg_class_oid, relations[i]) ||
			!ConditionalLockRelationOid(relations[i], ShareUpdateExclusiveLock))
			continue;
		exists = SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relations[i]));
		if (!exists)
			collected = cfd_collect_orphans(relations[i]);
		UnlockRelationOid(relations[i], ShareUpdateExclusiveLock);
		postponed = !exists && collected.postponed != NULL;
		if (!exists && sink != NULL)
			sink(arg, relations[i], &collected);
	}
	pfree(relations);
}

/*
 * Collects databases that do not exist in any transaction. As with relations,
 * the second check sees a database whose row has just been replaced. The OID
 * is not reused between check and sweep, because the OID counter does not wrap
 * around that quickly.
 */
static void
collect_databases(OrphanSink sink, void *arg)
{
	int			count;
	uint32	   *databases = cfd_listed_in_keeper(InvalidOid, &count);

	for (int i = 0; i < count; i++)
	{
		CfdCollected collected;

		CHECK_FOR_INTERRUPTS();
		if (databases[i] == MyDatabaseId ||
			may_exist(DatabaseRelationId, DatabaseOidIndexId, Anum_pg_database_oid, databases[i]) ||
			SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(databases[i])))
			continue;
		collected = cfd_collect_database(databases[i]);
		if (sink != NULL)
			sink(arg, InvalidOid, &collected);
	}
	pfree(databases);
}

/* ---------- VACUUM ---------- */

/* Opens the channel. If the keeper is unreachable, logs that and returns false. */
static bool
cfd_vacuum_reach_keeper(int level)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool reached = false;

	PG_TRY();
	{
		cfd_begin();
		reached = true;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED || error->sqlerrcode == ERRCODE_ADMIN_SHUTDOWN)
			PG_RE_THROW();
		FlushErrorState();
		ereport(level,
				(errmsg("garbage in Confide's keeper is not collected now: %s", error->message)));
		FreeErrorData(error);
	}
	PG_END_TRY();
	return reached;
}

/* Live rows of a table, as just reported by its vacuum. */
static double
live_rows(Relation table)
{
	PgStat_StatTabEntry *entry = pgstat_fetch_stat_tabentry(RelationGetRelid(table));

	return entry != NULL ? CFD_LIVE_TUPLES(entry) : -1;
}

/*
 * What postpones the collection of a table, after a wait, postpones that of
 * all others, and of what dropped ones have left: so a VACUUM of many tables
 * waits once.
 */
void
cfd_vacuum_garbage(Relation table, struct VacuumParams *params, BufferAccessStrategy strategy)
{
	static TimestampTz postponed_in = 0;	/* start of a statement */
	int			level = (params->options & VACOPT_VERBOSE) != 0 ? INFO : DEBUG1;
	TimestampTz statement = GetCurrentStatementStartTimestamp();
	CfdCollected result = {0};

	if (!cfd_gc_enabled || params->is_wraparound || !cfd_holds_fids(cfd_columns(table)) || !cfd_vacuum_reach_keeper(level))
		return;
	if (postponed_in == statement)
		result.postponed = "that of an earlier table has waited in vain";
	else
		result = cfd_collect(table, strategy, live_rows(table));
	if (result.postponed != NULL)
	{
		postponed_in = statement;
		ereport(level,
				(errmsg("garbage of \"%s\" in Confide's keeper is not collected now: %s",
						RelationGetRelationName(table), result.postponed)));
		return;
	}
	ereport(level,
			(errmsg("garbage of \"%s\" in Confide's keeper: " INT64_FORMAT " identifiers found, " INT64_FORMAT " values freed",
					RelationGetRelationName(table), result.found, result.swept)));
	collect_orphans(NULL, NULL);
	collect_databases(NULL, NULL);
}

/* ---------- SQL functions ---------- */

/* Collects at the pace of the vacuum cost settings, as VACUUM does. */
static CfdCollected
collect_slowly(Relation table)
{
	CfdCollected result;
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_VACUUM);

	VacuumCostActive = VacuumCostDelay > 0;
	VacuumCostBalance = 0;
	PG_TRY();
	{
		result = cfd_collect(table, strategy, -1);
	}
	PG_FINALLY();
	{
		VacuumCostActive = false;
	}
	PG_END_TRY();
	FreeAccessStrategy(strategy);
	return result;
}

static Datum
text_or_null(const char *text, bool *null)
{
	*null = text == NULL;
	return text != NULL ? CStringGetTextDatum(text) : (Datum) 0;
}

PG_FUNCTION_INFO_V1(cfd_gc_table);
Datum
cfd_gc_table(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	ListCell   *cell;

	PreventCommandDuringRecovery("confide.gc()");
	InitMaterializedSRF(fcinfo, 0);
	foreach(cell, cfd_target_tables(PG_GETARG_OID(0)))
	{
		Relation	table = cfd_target_open(lfirst_oid(cell), ShareUpdateExclusiveLock);
		CfdCollected collected = collect_slowly(table);
		Datum		values[4];
		bool		nulls[4] = {false};

		values[0] = CStringGetTextDatum(RelationGetRelationName(table));
		values[1] = Int64GetDatum(collected.found);
		values[2] = Int64GetDatum(collected.swept);
		values[3] = text_or_null(collected.postponed, &nulls[3]);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		/*
		 * Keep the lock: the sweep is in the WAL, and this transaction may end
		 * later.
		 */
		table_close(table, NoLock);
	}
	return (Datum) 0;
}

static void
put_orphan(void *arg, Oid relation, const CfdCollected *collected)
{
	ReturnSetInfo *result = arg;
	Datum		values[3];
	bool		nulls[3] = {false};

	/* The leftovers of a database have no relation. */
	values[0] = ObjectIdGetDatum(relation);
	nulls[0] = !OidIsValid(relation);
	values[1] = Int64GetDatum(collected->swept);
	values[2] = text_or_null(collected->postponed, &nulls[2]);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

PG_FUNCTION_INFO_V1(cfd_gc_orphans);
Datum
cfd_gc_orphans(PG_FUNCTION_ARGS)
{
	PreventCommandDuringRecovery("confide.gc()");
	InitMaterializedSRF(fcinfo, 0);
	collect_orphans(put_orphan, fcinfo->resultinfo);
	collect_databases(put_orphan, fcinfo->resultinfo);
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(cfd_stat_progress_gc);
Datum
cfd_stat_progress_gc(PG_FUNCTION_ARGS)
{
	static const char *const phases[] = {
		[CFD_GC_IDLE] = "initializing",
		[CFD_GC_WAITING] = "waiting for writers",
		[CFD_GC_TABLE] = "marking table",
		[CFD_GC_INDEXES] = "marking indexes",
		[CFD_GC_STATISTICS] = "marking statistics",
		[CFD_GC_PLANNERS] = "waiting for planners",
		[CFD_GC_SWEEPING] = "sweeping",
	};
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	CfdGcProgress p;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; cfd_gc_progress_of(i, &p); i++)
	{
		Datum		values[8];
		bool		nulls[8] = {false};

		if (p.pid == 0 || p.phase < 0 || p.phase >= lengthof(phases))
			continue;
		values[0] = Int32GetDatum(p.pid);
		values[1] = ObjectIdGetDatum(p.database);
		values[2] = ObjectIdGetDatum(p.relation);
		values[3] = CStringGetTextDatum(phases[p.phase]);
		values[4] = Int64GetDatum(p.pages_total);
		values[5] = Int64GetDatum(p.pages_done);
		values[6] = Int64GetDatum(p.found);
		values[7] = Int64GetDatum(p.swept);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
