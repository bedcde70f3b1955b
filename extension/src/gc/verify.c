/*
 * verify.c
 *	  confide.verify(regclass): counts the FIDs that are physically in a
 *	  table, its indexes and its statistics, and those among them that do
 *	  not resolve.
 *
 * Changes nothing. The number of unresolved FIDs is always 0 (invariant 2 of
 * the design).
 *
 * Invariant: no collection of the table runs meanwhile. On a standby, though,
 * the replay of one may come between finding a FID and asking for it.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "session/channel.h"
#include "fmgr.h"
#include "funcapi.h"
#include "gc/places.h"
#include "gc/target.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"
#include "value/promote.h"

typedef struct Count
{
	int64		found;
	int64		unresolved;
	int			waiting;
	CfdFid		fids[4096];
} Count;

static void
cfd_verify_ask(Count *count)
{
	CfdWireResolve body = {.count = count->waiting};
	CfdReadResolveAnswer read;
	const char *answer;
	uint32		length;

	if (count->waiting == 0)
		return;
	answer = cfd_call(CFD_KIND_RESOLVE, &body, sizeof(body), count->fids, count->waiting * sizeof(CfdFid), &length);
	CFD_DECODE(resolve_answer, answer, length, &read);
	count->unresolved += read.head.unresolved;
	count->waiting = 0;
}

static void
cfd_verify_take(void *arg, const CfdFid *fids, int n)
{
	Count	   *count = arg;

	if (n > lengthof(count->fids) - count->waiting)
		cfd_verify_ask(count);
	memcpy(count->fids + count->waiting, fids, n * sizeof(CfdFid));
	count->waiting += n;
	count->found += n;
}

/* Returns one row of the result and resets the counters. */
static void
put_row(ReturnSetInfo *result, Count *count, const char *place, const char *name)
{
	Datum		values[4];
	bool		nulls[4] = {false};

	cfd_verify_ask(count);
	values[0] = CStringGetTextDatum(place);
	values[1] = CStringGetTextDatum(name);
	values[2] = Int64GetDatum(count->found);
	values[3] = Int64GetDatum(count->unresolved);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	count->found = count->unresolved = 0;
}

static void
cfd_verify_begin(CfdSearch *search, Count *count)
{
	*search = (CfdSearch) {.sink = cfd_verify_take,.arg = count};
	search->strategy = GetAccessStrategy(BAS_BULKREAD);
	search->snapshot = RegisterSnapshot(GetLatestSnapshot());
}

static void
cfd_verify_end(CfdSearch *search)
{
	UnregisterSnapshot(search->snapshot);
	FreeAccessStrategy(search->strategy);
}

/*
 * Statistics of a table or of a partitioned table; the latter contain FIDs of
 * its partitions.
 */
static void
verify_statistics(const CfdSearch *search, Oid oid, ReturnSetInfo *result)
{
	cfd_search_statistics(search, oid);
	put_row(result, search->arg, "statistics", get_rel_name(oid));
}

static void
verify(Oid oid, ReturnSetInfo *result)
{
	LOCKMODE	mode = RecoveryInProgress() ? AccessShareLock : ShareUpdateExclusiveLock;
	Relation	table = cfd_target_open(oid, mode);
	Count	   *count = palloc0(sizeof(Count));
	CfdSearch	search;
	ListCell   *cell;

	cfd_verify_begin(&search, count);
	/* Values that move to a history are in the WAL only when their transaction commits. */
	search.committed = cfd_columns(table)->ledger.role == CFD_LEDGER_HISTORY;
	cfd_search_heap(&search, table);
	put_row(result, count, "table", RelationGetRelationName(table));
	foreach(cell, RelationGetIndexList(table))
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		cfd_search_index(&search, index);
		put_row(result, count, "index", RelationGetRelationName(index));
		index_close(index, NoLock);
	}
	verify_statistics(&search, oid, result);
	cfd_verify_end(&search);
	pfree(count);
	table_close(table, NoLock);
}

PG_FUNCTION_INFO_V1(cfd_verify);
Datum
cfd_verify(PG_FUNCTION_ARGS)
{
	Oid			oid = PG_GETARG_OID(0);
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	ListCell   *cell;

	InitMaterializedSRF(fcinfo, 0);
	foreach(cell, cfd_target_tables(oid))
		verify(lfirst_oid(cell), result);
	if (get_rel_relkind(oid) == RELKIND_PARTITIONED_TABLE)
	{
		Count	   *count = palloc0(sizeof(Count));
		CfdSearch	search;

		cfd_verify_begin(&search, count);
		verify_statistics(&search, oid, result);
		cfd_verify_end(&search);
	}
	return (Datum) 0;
}
