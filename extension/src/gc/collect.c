/*
 * collect.c
 *	  Mark and sweep of one table's partitions; see collect.h.
 *
 * The steps in order, with their purposes:
 *
 * 1. The table is locked as by VACUUM: no rewrite, ANALYZE, index build,
 *    truncation or other collection runs. Reads and writes continue.
 * 2. The keeper takes the boundary: values that are in the partitions now may
 *    be garbage, later ones are not.
 * 3. Wait until rows that are being written at that moment are on their pages.
 * 4. A snapshot is taken and registered, and the flag of VACUUM that makes
 *    other backends ignore it is cleared. From now on no row version that
 *    anybody could still update or index is removed from its page. Without
 *    this, an UPDATE could carry a FID from a page not read yet to one that has
 *    been read, while pruning removes the old version, and a live value would
 *    be swept.
 * 5. FIDs that outlive transactions in memory (cursors WITH HOLD, procedures)
 *    are on no page. While any backend has some, nothing is swept. FIDs that a
 *    backend reads after the snapshot belong to rows that the snapshot keeps.
 * 6. All FIDs are marked: table, then indexes, then statistics (gc/places.h).
 * 7. WAL that a logical replication slot has yet to decode contains FIDs, too.
 *    While a slot lags behind, nothing is swept.
 * 8. Queries may be being planned by statistics that have been replaced, or by
 *    the first or last entry of an index, whose row was dead and has gone. Their
 *    plannings are waited for. Later ones know the present statistics
 *    (hooks/planner.c), whose FIDs are marked, and read the present index.
 * 9. The keeper names the unmarked values. Its redo record is written to the
 *    WAL and flushed; only then may their slots be reused. Hence the record of
 *    a new value in such a slot is later in the WAL, and the deletion of the
 *    rows, which is earlier, is on disk before a value is lost.
 *
 * Invariant: as in collect.h. An error before step 9 leaves everything as it
 * was; an error during step 9 leaves some garbage for the next collection.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_statistic.h"
#include "session/channel.h"
#include "session/events.h"
#include "gc/collect.h"
#include "session/pins.h"
#include "gc/places.h"
#include "index/derived.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "value/recorded.h"
#include "value/types.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "wal/rmgr.h"

#define WRITERS_LIMIT_MS 10000
#define PLANNERS_LIMIT_MS 10000
#define SLOTS_LIMIT_MS 5000
/* Minimum amount of garbage worth collecting, as a fraction of live values. */
#define GARBAGE_PART 0.1

/* A partition, as described by the keeper. */
typedef CfdWireCollected Partition;


/* FIDs waiting to be sent to the keeper. */
typedef struct Marks
{
	volatile CfdGcProgress *progress;
	int			count;
	CfdFid		fids[4096];
} Marks;

bool		cfd_gc_enabled = true;
static int	threshold = 1000;

/* ---------- marking ---------- */

static void
send_marks(Marks *marks)
{
	CfdWireGarbageMark body = {.count = marks->count};

	if (marks->count == 0)
		return;
	cfd_send(CFD_KIND_GARBAGE_MARK, &body, sizeof(body), marks->fids, marks->count * sizeof(CfdFid));
	marks->count = 0;
}

static void
cfd_collect_mark(void *arg, const CfdFid *fids, int count)
{
	Marks	   *marks = arg;

	if (count > lengthof(marks->fids) - marks->count)
		send_marks(marks);
	memcpy(marks->fids + marks->count, fids, count * sizeof(CfdFid));
	marks->count += count;
	marks->progress->found += count;
}

static void
count_page(void *arg)
{
	((Marks *) arg)->progress->pages_done++;
}

static void
mark_indexes(const CfdSearch *search, Relation table)
{
	ListCell   *cell;

	foreach(cell, RelationGetIndexList(table))
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		cfd_search_index(search, index);
		index_close(index, AccessShareLock);
	}
}

/* Marks all FIDs. An error here ends the collection before anything is swept. */
static void
mark_all(Relation table, BufferAccessStrategy strategy, Snapshot snapshot)
{
	Marks	   *marks = palloc(sizeof(Marks));
	volatile CfdGcProgress *progress = cfd_gc_progress();
	CfdSearch	search = {.sink = cfd_collect_mark,.arg = marks,.page_done = count_page,.strategy = strategy,.snapshot = snapshot};

	marks->progress = progress;
	marks->count = 0;
	if (table != NULL)
	{
		progress->phase = CFD_GC_TABLE;
		cfd_search_heap(&search, table);
		progress->phase = CFD_GC_INDEXES;
		mark_indexes(&search, table);
	}
	progress->phase = CFD_GC_STATISTICS;
	cfd_search_statistics(&search, InvalidOid);
	send_marks(marks);
	pfree(marks);
}

/* ---------- obstacles to a sweep ---------- */

/*
 * VACUUM sets a flag that makes other backends ignore its snapshot when they
 * compute what can be removed. From here on our snapshot must count.
 */
static void
count_for_others(void)
{
	if ((MyProc->statusFlags & PROC_IN_VACUUM) == 0)
		return;
	LWLockAcquire(ProcArrayLock, LW_EXCLUSIVE);
	MyProc->statusFlags &= ~PROC_IN_VACUUM;
	ProcGlobal->statusFlags[MyProc->pgxactoff] = MyProc->statusFlags;
	LWLockRelease(ProcArrayLock);
}

/*
 * Name of a logical slot of this database that has not confirmed the given
 * position, or NULL.
 */
static const char *
lagging_slot(XLogRecPtr position)
{
	const char *name = NULL;

	if (max_replication_slots <= 0)
		return NULL;
	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots && name == NULL; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
		bool		lags;

		if (!slot->in_use)
			continue;
		SpinLockAcquire(&slot->mutex);
		/* A slot that has lost its WAL cannot decode any more. */
		lags = slot->data.database == MyDatabaseId && !XLogRecPtrIsInvalid(slot->data.restart_lsn) &&
			slot->data.confirmed_flush <= position;
		SpinLockRelease(&slot->mutex);
		if (lags)
			name = pstrdup(NameStr(slot->data.name));
	}
	LWLockRelease(ReplicationSlotControlLock);
	return name;
}

static const char *
wait_for_slots(void)
{
	XLogRecPtr	position = GetLastImportantRecPtr();
	const char *name = NULL;

	for (int waited = 0; waited <= SLOTS_LIMIT_MS; waited += 100)
	{
		name = lagging_slot(position);
		if (name == NULL)
			return NULL;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 100, cfd_wait_event());
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return psprintf("replication slot \"%s\" has not confirmed what was written before", name);
}

/* ---------- sweeping ---------- */

/* Sweeps one batch. Returns false if there is none. */
static bool
sweep_batch(volatile CfdGcProgress *progress)
{
	uint32		length;
	const char *answer = cfd_call(CFD_KIND_GARBAGE_SWEEP, NULL, 0, NULL, 0, &length);
	CfdReadGarbageSweepAnswer read;

	CFD_DECODE(garbage_sweep_answer, answer, length, &read);
	if (read.head.more == 0)
		return false;
	if (read.record_length > 0)
	{
		if (read.record_length < CFD_WAL_RECORD_MIN)
			cfd_violation("redo record is too short");
		cfd_wal_log((const char *) read.record, read.record_length, true);
		XLogFlush(XactLastRecEnd);
	}
	cfd_note_sweep();
	cfd_recorded_position();
	cfd_send(CFD_KIND_GARBAGE_SWEPT, NULL, 0, NULL, 0);
	progress->swept += read.head.values;
	return true;
}

static void
sweep(volatile CfdGcProgress *progress)
{
	progress->phase = CFD_GC_SWEEPING;
	while (sweep_batch(progress))
		CHECK_FOR_INTERRUPTS();
}

/* ---------- one collection ---------- */

/* Starts a collection in the keeper and returns its partitions. */
static const Partition *
cfd_collect_begin(Oid database, Oid relation, Relation table, const List *derived, uint32 *count)
{
	CfdWireGarbageBegin body = {.database = database,.relation = relation};
	CfdReadGarbageBeginAnswer read;
	TupleDesc	desc = table != NULL ? RelationGetDescr(table) : NULL;
	CfdWireLiveColumn *columns = palloc0(sizeof(*columns) * ((desc != NULL ? desc->natts : 1) + list_length(derived)));
	const char *answer;
	uint32		length;
	int			alive = 0;
	ListCell   *cell;

	for (int i = 0; desc != NULL && i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		uint8		type = attribute->attisdropped ? 0 : cfd_stored_code(attribute->atttypid);

		if (type != 0)
			columns[alive++] = (CfdWireLiveColumn) {.attribute = i + 1,.typmod = attribute->atttypmod,.t = type};
	}
	foreach(cell, derived)
		columns[alive++] = *(CfdWireLiveColumn *) lfirst(cell);
	answer = cfd_call(CFD_KIND_GARBAGE_BEGIN, &body, sizeof(body), columns, alive * sizeof(*columns), &length);
	CFD_DECODE(garbage_begin_answer, answer, length, &read);
	pfree(columns);
	*count = read.partitions_count;
	return read.partitions;
}

/* Fraction of a column's values that are NULL, according to the statistics. */
static double
null_fraction(Oid relation, int attribute)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relation), Int16GetDatum(attribute),
										BoolGetDatum(false));
	double		result = 0;

	if (HeapTupleIsValid(tuple))
	{
		result = ((Form_pg_statistic) GETSTRUCT(tuple))->stanullfrac;
		ReleaseSysCache(tuple);
	}
	return result;
}

/*
 * Values per row in a partition of what indexes' expressions make. Several
 * indexes may share it, or have different results of the same columns.
 */
static double
values_per_row(const List *derived, int attribute, const Partition *partitions, uint32 count)
{
	int			indexes = 0;
	int			sharing = 0;
	ListCell   *cell;

	foreach(cell, derived)
		indexes += ((CfdWireLiveColumn *) lfirst(cell))->attribute == attribute;
	for (uint32 i = 0; i < count; i++)
		sharing += partitions[i].alive && partitions[i].attribute == attribute;
	return (double) indexes / Max(sharing, 1);
}

static bool
worth_it(Oid relation, const List *derived, const Partition *partitions, uint32 count, double rows)
{
	double		garbage = 0;
	double		used = 0;

	if (rows < 0)
		return true;
	/* Reading statistics sends nothing to the keeper, so its answer remains valid. */
	for (uint32 i = 0; i < count; i++)
	{
		double		expected = 0;

		if (partitions[i].alive && partitions[i].attribute >= CFD_DERIVED_ATTRIBUTE)
			expected = rows * values_per_row(derived, partitions[i].attribute, partitions, count);
		else if (partitions[i].alive && cfd_array_code(get_atttype(relation, partitions[i].attribute)) != 0)
			expected = 0;		/* nobody knows how many elements arrays have */
		else if (partitions[i].alive)
			expected = rows * (1 - null_fraction(relation, partitions[i].attribute));
		garbage += Max(0, partitions[i].values - expected);
		used += expected;
	}
	return threshold == 0 || (garbage >= threshold && garbage >= used * GARBAGE_PART);
}

static uint64
pages_of(Relation table)
{
	uint64		pages = RelationGetNumberOfBlocks(table);
	ListCell   *cell;

	foreach(cell, RelationGetIndexList(table))
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		if (cfd_index_holds_fids(index))
			pages += RelationGetNumberOfBlocks(index);
		index_close(index, AccessShareLock);
	}
	return pages;
}

static const char *
mark_and_sweep(Relation table, BufferAccessStrategy strategy)
{
	volatile CfdGcProgress *progress = cfd_gc_progress();
	Snapshot	snapshot;
	const char *postponed;
	int			holder;

	progress->phase = CFD_GC_WAITING;
	if (!cfd_wait_for_writers(WRITERS_LIMIT_MS))
		return "a row has been on its way into a table for long";
	count_for_others();
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	holder = cfd_any_holder();
	if (holder != 0)
	{
		UnregisterSnapshot(snapshot);
		return psprintf("process %d runs a procedure or has a cursor WITH HOLD", holder);
	}
	mark_all(table, strategy, snapshot);
	UnregisterSnapshot(snapshot);
	postponed = wait_for_slots();
	progress->phase = CFD_GC_PLANNERS;
	if (postponed == NULL && !cfd_wait_for_planners(PLANNERS_LIMIT_MS))
		postponed = "a query has been planned for long";
	if (postponed == NULL)
		sweep(progress);
	return postponed;
}

static CfdCollected
cfd_collect_run(Oid database, Oid relation, Relation table, BufferAccessStrategy strategy, double rows)
{
	volatile CfdGcProgress *progress = cfd_gc_progress();
	volatile CfdCollected result = {0};
	const Partition *partitions;
	uint32		count;

	progress->pid = MyProcPid;
	progress->database = database;
	progress->relation = relation;
	progress->pages_total = table != NULL ? pages_of(table) : 0;
	progress->pages_done = progress->found = progress->swept = 0;
	PG_TRY();
	{
		List	   *derived = table != NULL ? cfd_derived_kinds(table) : NIL;

		partitions = cfd_collect_begin(database, relation, table, derived, &count);
		if (database != MyDatabaseId)
			sweep(progress);	/* nothing is left that could refer to a value */
		else if (count > 0 && worth_it(relation, derived, partitions, count, rows))
			result.postponed = mark_and_sweep(table, strategy);
		result.found = progress->found;
		result.swept = progress->swept;
	}
	PG_FINALLY();
	{
		cfd_try_send(CFD_KIND_GARBAGE_END, NULL, 0, true);
		memset((void *) progress, 0, sizeof(*progress));
	}
	PG_END_TRY();
	return result;
}

CfdCollected
cfd_collect(Relation table, BufferAccessStrategy strategy, double rows)
{
	return cfd_collect_run(MyDatabaseId, RelationGetRelid(table), table, strategy, rows);
}

CfdCollected
cfd_collect_orphans(Oid relation)
{
	return cfd_collect_run(MyDatabaseId, relation, NULL, NULL, -1);
}

CfdCollected
cfd_collect_database(Oid database)
{
	return cfd_collect_run(database, CFD_WHOLE_DATABASE, NULL, NULL, -1);
}

void
cfd_gc_init(void)
{
	DefineCustomBoolVariable("confide.gc",
							 "Whether VACUUM frees values in the keeper that nothing names.",
							 NULL, &cfd_gc_enabled, true, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("confide.gc_threshold",
							"Sets the number of values from which on VACUUM frees them.",
							"There must also be a tenth as many as there are in use. With 0 it always does.",
							&threshold, 1000, 0, INT_MAX, PGC_SUSET, 0, NULL, NULL, NULL);
}
