/*
 * am.c
 *	  The table access method "confide": heap, which promotes rows before it writes them.
 *
 * It is a copy of heap's routine struct with few overrides; the pages are heap pages. Operations
 * that copy tuples below an access method (CLUSTER, VACUUM FULL, TOAST) need no changes: the FIDs
 * in a relation already belong to its partitions.
 *
 * Rows of ledger tables are numbered before they are written, and reported to the keeper afterwards
 * (ledger/ledger.h).
 *
 * Invariant: no row reaches heap with a temporary FID in a protected column.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "index/build.h"
#include "index/derived.h"
#include "index/search.h"
#include "catalog/pg_am.h"
#include "compat/compat.h"
#include "fmgr.h"
#include "gc/collect.h"
#include "ledger/ledger.h"
#include "session/pins.h"
#include "tableam/am.h"
#include "tableam/bulk.h"
#include "tableam/moved.h"
#include "tableam/slots.h"
#include "tableam/unready.h"
#include "value/types.h"
#include "utils/rel.h"

static const TableAmRoutine *heap;
static TableAmRoutine confide;

static void multi_insert(Relation relation, TupleTableSlot **slots, int count, CommandId cid, int options,
						 BulkInsertState bistate);

static void
tuple_insert(Relation relation, TupleTableSlot *slot, CommandId cid, int options, BulkInsertState bistate)
{
	if (cfd_bulk_take(relation, slot, cid, options, bistate, multi_insert))
		return;
	cfd_ledger_stamp(relation, &slot, 1, NULL);
	cfd_check_moved(relation, NULL, &slot, 1);
	cfd_promote_inserted(relation, slot);
	cfd_search_indexes(relation);
	heap->tuple_insert(relation, slot, cid, options, bistate);
	cfd_unpin_writer();
	cfd_ledger_written(relation, &slot, 1, NULL);
}

static void
tuple_insert_speculative(Relation relation, TupleTableSlot *slot, CommandId cid, int options,
						 BulkInsertState bistate, uint32 token)
{
	cfd_ledger_stamp(relation, &slot, 1, NULL);
	cfd_check_moved(relation, NULL, &slot, 1);
	cfd_promote_inserted(relation, slot);
	cfd_search_indexes(relation);
	heap->tuple_insert_speculative(relation, slot, cid, options, bistate, token);
	cfd_unpin_writer();
}

/* Only now it is known whether the row stays. */
static void
tuple_complete_speculative(Relation relation, TupleTableSlot *slot, uint32 token, bool succeeded)
{
	heap->tuple_complete_speculative(relation, slot, token, succeeded);
	if (succeeded)
		cfd_ledger_written(relation, &slot, 1, NULL);
}

static void
multi_insert(Relation relation, TupleTableSlot **slots, int count, CommandId cid, int options,
			 BulkInsertState bistate)
{
	cfd_ledger_stamp(relation, slots, count, NULL);
	cfd_check_moved(relation, NULL, slots, count);
	cfd_promote_slots(relation, NIL, slots, count);
	cfd_search_indexes(relation);
	heap->multi_insert(relation, slots, count, cid, options, bistate);
	cfd_unpin_writer();
	cfd_ledger_written(relation, slots, count, NULL);
	cfd_copy_batch_done(relation);
}

static void
finish_bulk_insert(Relation relation, int options)
{
	cfd_bulk_finish(relation);
	if (heap->finish_bulk_insert != NULL)
		heap->finish_bulk_insert(relation, options);
}

static TM_Result
tuple_update(Relation relation, ItemPointer otid, TupleTableSlot *slot, CommandId cid,
			 Snapshot snapshot, Snapshot crosscheck, bool wait, TM_FailureData *tmfd,
			 LockTupleMode *lockmode, CfdUpdateIndexes *update_indexes)
{
	CfdLedgerBefore before = cfd_ledger_before(relation, otid);
	bool		is_ledger = before.version != NULL;
	TM_Result	result;

	cfd_ledger_stamp(relation, &slot, 1, is_ledger ? &before : NULL);
	cfd_check_moved(relation, otid, &slot, 1);
	cfd_promote_updated(relation, otid, slot);
	cfd_search_indexes(relation);
	result = heap->tuple_update(relation, otid, slot, cid, snapshot, crosscheck, wait, tmfd,
								lockmode, update_indexes);
	cfd_unpin_writer();
	if (is_ledger && result == TM_Ok)
		cfd_ledger_written(relation, &slot, 1, &before);
	cfd_ledger_free(&before);
	return result;
}

static TM_Result
tuple_delete(Relation relation, ItemPointer tid, CommandId cid, Snapshot snapshot, Snapshot crosscheck,
			 bool wait, TM_FailureData *tmfd, bool changes_partition)
{
	CfdLedgerBefore before = cfd_ledger_before(relation, tid);
	TM_Result	result;

	result = heap->tuple_delete(relation, tid, cid, snapshot, crosscheck, wait, tmfd, changes_partition);
	if (before.version != NULL && result == TM_Ok)
		cfd_ledger_deleted(relation, &before);
	cfd_ledger_free(&before);
	return result;
}

/* VACUUM may have removed the last references to values in the keeper. */
static void
relation_vacuum(Relation relation, struct VacuumParams *params, BufferAccessStrategy strategy)
{
	heap->relation_vacuum(relation, params, strategy);
	cfd_vacuum_garbage(relation, params, strategy);
}

/*
 * Heap's index scans check that the relation has heap's own routine struct, so it has while they
 * run.
 */
static double
scan_as_heap(Relation table, Relation index, struct IndexInfo *info, bool allow_sync, bool anyvisible, bool progress,
			 BlockNumber start, BlockNumber blocks, IndexBuildCallback callback, void *state, TableScanDesc scan)
{
	const TableAmRoutine *own = table->rd_tableam;
	double		tuples;

	table->rd_tableam = heap;
	PG_TRY();
	{
		tuples = heap->index_build_range_scan(table, index, info, allow_sync, anyvisible, progress,
											  start, blocks, callback, state, scan);
	}
	PG_FINALLY();
	{
		table->rd_tableam = own;
	}
	PG_END_TRY();
	return tuples;
}

/* Rows go from the scan to the promotion of their expressions' values, then to the sort. */
static double
index_build_range_scan(Relation table, Relation index, struct IndexInfo *info, bool allow_sync,
					   bool anyvisible, bool progress, BlockNumber start, BlockNumber blocks,
					   IndexBuildCallback callback, void *state, TableScanDesc scan)
{
	CfdDeriving *deriving = NULL;
	CfdBuild   *build;
	double		tuples;

	if (cfd_unready_build(index, info))
	{
		cfd_unready_mark(table, RelationGetRelid(index));
		/* The previous estimate: PostgreSQL updates it with the result of a build. */
		return Max(table->rd_rel->reltuples, 0);
	}
	build = scan == NULL && callback != NULL ? cfd_build_begin(index, callback, state) : NULL;
	cfd_build_tell(table, index);
	cfd_derived_tell(table, index);
	if (build != NULL)
	{
		callback = cfd_build_row;
		state = build;
	}
	if (callback != NULL && cfd_index_derives(index))
	{
		deriving = cfd_deriving_begin(table, index, callback, state);
		callback = cfd_deriving_row;
		state = deriving;
	}
	tuples = scan_as_heap(table, index, info, allow_sync, anyvisible, progress, start, blocks, callback, state, scan);
	if (deriving != NULL)
		cfd_deriving_end(deriving);
	if (build != NULL)
		cfd_build_end(build);
	return tuples;
}

static void
index_validate_scan(Relation table, Relation index, struct IndexInfo *info, Snapshot snapshot,
					struct ValidateIndexState *state)
{
	const TableAmRoutine *own = table->rd_tableam;

	cfd_search_indexes(table);
	table->rd_tableam = heap;
	PG_TRY();
	{
		heap->index_validate_scan(table, index, info, snapshot, state);
	}
	PG_FINALLY();
	{
		table->rd_tableam = own;
	}
	PG_END_TRY();
}

/* Whether PostgreSQL's sort by an index's keys would compare them one by one. */
static bool
compares_pairs(Relation index)
{
	for (int i = 1; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (cfd_type_code(index->rd_opcintype[i]) != 0)
			return true;
	}
	return false;
}

/*
 * For CLUSTER, sorting by several columns would compare rows one by one, so the index's order is
 * used.
 */
static void
relation_copy_for_cluster(Relation table, Relation copy, Relation index, bool use_sort,
						  TransactionId oldest, TransactionId *frozen, MultiXactId *cutoff,
						  double *tuples, double *vacuumed, double *recently_dead)
{
	if (use_sort && compares_pairs(index))
		use_sort = false;
	heap->relation_copy_for_cluster(table, copy, index, use_sort, oldest, frozen, cutoff, tuples,
									vacuumed, recently_dead);
}

/* TOAST tables contain no FIDs. */
static Oid
relation_toast_am(Relation relation)
{
	(void) relation;
	return HEAP_TABLE_AM_OID;
}

static const TableAmRoutine *
routine(void)
{
	if (heap == NULL)
	{
		heap = GetHeapamTableAmRoutine();
		confide = *heap;
		confide.tuple_insert = tuple_insert;
		confide.tuple_insert_speculative = tuple_insert_speculative;
		confide.multi_insert = multi_insert;
		confide.tuple_complete_speculative = tuple_complete_speculative;
		confide.finish_bulk_insert = finish_bulk_insert;
		confide.tuple_update = tuple_update;
		confide.tuple_delete = tuple_delete;
		confide.index_build_range_scan = index_build_range_scan;
		confide.index_validate_scan = index_validate_scan;
		confide.relation_vacuum = relation_vacuum;
		confide.relation_copy_for_cluster = relation_copy_for_cluster;
		confide.relation_toast_am = relation_toast_am;
	}
	return &confide;
}

PG_FUNCTION_INFO_V1(cfd_tableam_handler);
Datum
cfd_tableam_handler(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_POINTER(routine());
}
