/*
 * promote.c
 *	  Partitions and promotion; see promote.h.
 *
 * Partition numbers are cached in rd_amcache, which a relcache invalidation
 * frees. They are valid for one connection only and are requested again after
 * a reconnect.
 *
 * Invariant: every permanent FID that we accept is in the partition we asked
 * for.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "session/channel.h"
#include "session/gate.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "value/delivery.h"
#include "value/kept.h"
#include "value/promote.h"
#include "value/types.h"
#include "wal/rmgr.h"

/*
 * Makes the keeper's promise durable with the transaction, by writing its redo
 * record to the WAL before any record that contains one of the FIDs. A keeper
 * without a store sends no redo record. Returns whether a record was written.
 */
static bool
log_redo_record(const char *record, uint32 length, bool permanent)
{
	if (length == 0)
		return false;
	if (length < CFD_WAL_RECORD_MIN)
		cfd_violation("redo record is too short");
	cfd_wal_log(record, length, permanent);
	return true;
}

static bool
is_permanent(Relation relation)
{
	return relation->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT;
}

/*
 * Tells the keeper which partitions' redo records are on disk. That takes one
 * flush per table. If a record were only in WAL buffers, a crash of PostgreSQL
 * would lose it, while the surviving keeper would not send it again.
 */
static void
tell_logged(const uint32 *partitions, int count)
{
	if (count == 0)
		return;
	XLogFlush(XactLastRecEnd);
	for (int i = 0; i < count; i++)
	{
		CfdWirePartitionLogged logged = {.partition = partitions[i]};

		/* If this message is lost, the partition is logged once more. */
		cfd_try_send(CFD_KIND_PARTITION_LOGGED, &logged, sizeof(logged), true);
	}
}

/*
 * Appends the names by which grants refer to a column, each with its
 * terminating zero byte.
 */
static void
put_column_name(StringInfo names, Oid relation, const char *column)
{
	Oid			namespace = get_rel_namespace(relation);
	char	   *schema = isTempNamespace(namespace) ? "pg_temp" : get_namespace_name(namespace);
	char	   *table = get_rel_name(relation);

	if (schema == NULL || table == NULL || column == NULL)
		return;
	appendBinaryStringInfo(names, schema, strlen(schema) + 1);
	appendBinaryStringInfo(names, table, strlen(table) + 1);
	appendBinaryStringInfo(names, column, strlen(column) + 1);
}

/*
 * Opens the partition of a column with this name; relation 0 stands for
 * constants in catalogs. Sets *logged if a redo record was written.
 */
static uint32
open_named(Oid relation, const char *column, int attribute, int32 typmod, uint8 type, bool permanent,
		   bool *logged)
{
	CfdWirePartitionOpen body = {
		.database = MyDatabaseId,.relation = relation,.attribute = attribute,.typmod = typmod,.t = type
	};
	CfdReadPartitionOpenAnswer read;
	StringInfoData names;
	const char *answer;
	uint32		length;
	uint32		partition;

	/* A standby may read a ledger's log before it allocates FIDs. */
	if (attribute != CFD_LEDGER_ATTRIBUTE || !RecoveryInProgress())
		cfd_state_need_fids();
	initStringInfo(&names);
	if (column != NULL)
		put_column_name(&names, relation, column);
	answer = cfd_call(CFD_KIND_PARTITION_OPEN, &body, sizeof(body), names.data, names.len, &length);
	pfree(names.data);
	CFD_DECODE(partition_open_answer, answer, length, &read);
	partition = read.head.partition;
	if (partition == 0 || partition >= CFD_ARENA_BASE)
		cfd_violation("impossible partition");
	*logged = log_redo_record((const char *) read.record, read.record_length, permanent);
	return partition;
}

/* As open_named, with the column's name from the catalog. */
static uint32
open_partition(Oid relation, int attribute, int32 typmod, uint8 type, bool permanent, bool *logged)
{
	char	   *column = NULL;

	if (OidIsValid(relation) && attribute != CFD_LEDGER_ATTRIBUTE)
		column = get_attname(relation, attribute, true);
	return open_named(relation, column, attribute, typmod, type, permanent, logged);
}

/*
 * A transient relation replaces another one during a rewrite; its values
 * belong to the original.
 */
static Oid
owner_of(Relation relation)
{
	return OidIsValid(relation->rd_rel->relrewrite) ? relation->rd_rel->relrewrite : RelationGetRelid(relation);
}

/* The code of a column's values, or of its elements. */
static uint8
type_of(TupleDesc desc, int i, bool array)
{
	Form_pg_attribute attribute = TupleDescAttr(desc, i);

	if (attribute->attisdropped)
		return 0;
	return array ? cfd_array_code(attribute->atttypid) : cfd_type_code(attribute->atttypid);
}

/* Position of the column with this name and type, or -1. */
static int
place_of(TupleDesc desc, const char *name, Oid type)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (!attribute->attisdropped && attribute->atttypid == type &&
			strcmp(NameStr(attribute->attname), name) == 0)
			return i;
	}
	return -1;
}

/* Whether a ledger's own columns are its only generated ones, and may be NULL until they are set. */
static bool
is_alone(TupleDesc desc, const CfdLedgerPlaces *at)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		bool		own = i == at->sn || i == at->valid_from || i == at->by;

		if (attribute->attgenerated != '\0' && (!own || attribute->attnotnull))
			return false;
	}
	return true;
}

/*
 * A table that lacks one of these columns is not treated as a ledger table.
 * Its log shows what it was.
 */
static void
load_ledger(TupleDesc desc, CfdLedgerPlaces *ledger)
{
	CfdLedgerRole role = CFD_NO_LEDGER;

	for (int i = 0; i < desc->natts && role == CFD_NO_LEDGER; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			role = cfd_ledger_role(TupleDescAttr(desc, i)->atttypid);
		ledger->sn = i;
	}
	ledger->valid_from = place_of(desc, "valid_from", TIMESTAMPTZOID);
	ledger->by = place_of(desc, "by", TEXTOID);
	ledger->valid_to = place_of(desc, "valid_to", TIMESTAMPTZOID);
	ledger->ended_by = place_of(desc, "ended_by", TEXTOID);
	if (ledger->valid_from >= 0 && ledger->by >= 0 &&
		(role != CFD_LEDGER_HISTORY || (ledger->valid_to >= 0 && ledger->ended_by >= 0)))
		ledger->role = role;
	ledger->alone = is_alone(desc, ledger);
}

static CfdColumns *
load_columns(Relation relation)
{
	TupleDesc	desc = RelationGetDescr(relation);
	CfdColumns *columns;
	CfdColumn  *found = palloc(desc->natts * sizeof(CfdColumn));
	int			counts[2] = {0};
	int			all = 0;

	/* Looking up types may free the relcache entry's cache, so do that first. */
	for (int array = 0; array < 2; array++)
	{
		for (int i = 0; i < desc->natts; i++)
		{
			uint8		type = type_of(desc, i, array);

			if (type == 0)
				continue;
			found[all++] = (CfdColumn) {.index = i,.type = type};
			counts[array]++;
		}
	}
	columns = MemoryContextAllocZero(CacheMemoryContext, offsetof(CfdColumns, column) + all * sizeof(CfdColumn));
	load_ledger(desc, &columns->ledger);
	columns->count = counts[0];
	columns->arrays = counts[1];
	memcpy(columns->column, found, all * sizeof(CfdColumn));
	pfree(found);
	if (relation->rd_amcache != NULL)
		pfree(relation->rd_amcache);
	relation->rd_amcache = columns;
	return columns;
}

const CfdColumns *
cfd_columns(Relation relation)
{
	return relation->rd_amcache != NULL ? relation->rd_amcache : load_columns(relation);
}

const CfdColumns *
cfd_open_columns(Relation relation)
{
	TupleDesc	desc = RelationGetDescr(relation);
	CfdColumns *columns = (CfdColumns *) cfd_columns(relation);
	uint32	   *partitions;
	uint32	   *fresh;
	uint32		generation;
	int			fresh_count = 0;
	int			count = columns->count + columns->arrays;

	cfd_begin();
	generation = cfd_channel.generation;
	if (columns->generation == generation)
		return columns;
	partitions = palloc(count * sizeof(uint32));
	fresh = palloc(count * sizeof(uint32));
	for (int n = 0; n < count; n++)
	{
		CfdColumn	column = columns->column[n];
		bool		logged;

		partitions[n] = open_partition(owner_of(relation), column.index + 1,
									   TupleDescAttr(desc, column.index)->atttypmod, column.type,
									   is_permanent(relation), &logged);
		if (logged)
			fresh[fresh_count++] = partitions[n];
		/* The cache may have been freed meanwhile; the columns are the same. */
		columns = (CfdColumns *) cfd_columns(relation);
	}
	/* Records of non-permanent relations are not flushed, and are sent again. */
	if (is_permanent(relation))
		tell_logged(fresh, fresh_count);
	for (int n = 0; n < count; n++)
		columns->column[n].partition = partitions[n];
	columns->generation = generation;
	pfree(partitions);
	pfree(fresh);
	return columns;
}

void
cfd_reopen_columns(Relation relation)
{
	/* A channel generation is never 0. */
	((CfdColumns *) cfd_columns(relation))->generation = 0;
	cfd_open_columns(relation);
}

uint32
cfd_open_derived(Relation relation, const char *column, int attribute, int32 typmod, uint8 type)
{
	bool		logged;
	uint32		partition;

	cfd_begin();
	partition = open_named(owner_of(relation), column, attribute, typmod, type, is_permanent(relation), &logged);
	if (logged && is_permanent(relation))
		tell_logged(&partition, 1);
	return partition;
}

uint32
cfd_open_log(Relation relation)
{
	CfdColumns *columns = (CfdColumns *) cfd_columns(relation);
	uint32		partition;
	uint32		generation;
	bool		logged;

	cfd_begin();
	generation = cfd_channel.generation;
	if (columns->log_generation == generation)
		return columns->log;
	partition = open_partition(owner_of(relation), CFD_LEDGER_ATTRIBUTE, -1, CFD_TYPE_BYTEA, true, &logged);
	tell_logged(&partition, logged ? 1 : 0);
	columns = (CfdColumns *) cfd_columns(relation);
	columns->log = partition;
	columns->log_generation = generation;
	return partition;
}

/*
 * Stores the permanent FIDs of the values that were promoted, and returns
 * their number.
 */
static int
take_fids(CfdPromotion *items, int count, const CfdWireFid *fids, uint64 given)
{
	int			done;

	if (given != (uint64) count)
		cfd_violation("answer about other values");
	for (done = 0; done < count; done++)
	{
		CfdFid		fid = fids[done];

		if (fid == CFD_NOT_PROMOTED)
			break;
		if (cfd_fid_partition(fid) != items[done].partition)
			cfd_violation("promoted into another partition");
		items[done].fid = fid;
	}
	if (done == 0)
		cfd_violation("promoted nothing");
	return done;
}

/* Clears the type of the values whose envelopes are not wanted. */
static void
choose_delivered(CfdPromotion *items, int count)
{
	bool		none = count > CFD_DELIVERY_VALUES_MAX || cfd_delivery_period() == 0;

	for (int i = 0; i < count; i++)
	{
		if (none || items[i].type == 0 || !cfd_delivery_expected(items[i].partition))
			items[i].type = 0;
	}
}

/* Caches the envelopes of promoted values, once the redo record has been written. */
static void
keep_delivered(const CfdPromotion *items, int count, uint64 period, CfdReader envelopes)
{
	CfdReadSealed sealed;

	for (int i = 0; i < count && envelopes.at != envelopes.end; i++)
	{
		if (items[i].type == 0)
			continue;
		if (!cfd_read_sealed(&envelopes, &sealed))
			cfd_violation("malformed envelope of a promoted value");
		cfd_kept_put(period, items[i].fid, items[i].type, (const char *) sealed.envelope, sealed.envelope_length);
	}
}

/* Promotes values from the first on. Returns how many were promoted. */
static int
promote_part(CfdPromotion *items, int count, bool permanent)
{
	CfdWirePromote body = {.count = count};
	CfdReadPromoteAnswer read;
	const char *answer;
	uint32		length;
	int			done;

	StaticAssertStmt(sizeof(CfdPromotion) == sizeof(CfdWireMove) &&
					 offsetof(CfdPromotion, partition) == offsetof(CfdWireMove, partition) &&
					 offsetof(CfdPromotion, type) == offsetof(CfdWireMove, t),
					 "a promotion stands in a message as it is");
	choose_delivered(items, count);
	answer = cfd_call(CFD_KIND_PROMOTE, &body, sizeof(body), items, count * sizeof(CfdPromotion), &length);
	CFD_DECODE(promote_answer, answer, length, &read);
	done = take_fids(items, count, read.fids, read.fids_count);
	log_redo_record((const char *) read.record, read.record_length, permanent);
	keep_delivered(items, done, read.head.period, read.envelopes);
	return done;
}

void
cfd_promote(Relation relation, CfdPromotion *items, int count)
{
	bool		permanent = relation == NULL || is_permanent(relation);

	cfd_state_need_fids();
	for (int done = 0; done < count;)
		done += promote_part(items + done, Min(count - done, CFD_ROWS_MAX), permanent);
}

const CfdWirePlace *
cfd_promote_searching(Relation relation, CfdPromotion *items, int count, uint32 searches, uint32 values,
					  const char *body, int length)
{
	CfdWirePromoteSearch fixed = {.count = count,.searches = searches,.values = values};
	CfdReadPromoteSearchAnswer read;
	StringInfoData all;
	const char *answer;
	uint32		bytes;
	int			done;

	cfd_state_need_fids();
	choose_delivered(items, count);
	initStringInfo(&all);
	appendBinaryStringInfo(&all, (char *) items, count * sizeof(CfdPromotion));
	appendBinaryStringInfo(&all, body, length);
	answer = cfd_call(CFD_KIND_PROMOTE_SEARCH, &fixed, sizeof(fixed), all.data, all.len, &bytes);
	pfree(all.data);
	CFD_DECODE(promote_search_answer, answer, bytes, &read);
	done = take_fids(items, count, read.fids, read.fids_count);
	log_redo_record((const char *) read.record, read.record_length, is_permanent(relation));
	keep_delivered(items, done, read.head.period, read.envelopes);
	if (done < count)
	{
		/*
		 * The redo record reached its size limit: promote the rest with
		 * further messages.
		 */
		cfd_promote(relation, items + done, count - done);
		return NULL;
	}
	if (read.places_count != 0 && read.places_count != values)
		cfd_violation("places of other values");
	return read.places_count == 0 ? NULL : read.places;
}

void
cfd_log_promotion(Relation relation, const char *record, uint32 length)
{
	log_redo_record(record, length, is_permanent(relation));
}

CfdFid
cfd_make_constant(CfdFid fid, uint8 type)
{
	static uint32 partitions[CFD_TYPE_MAX + 1];
	static uint32 generation = 0;
	CfdPromotion item = {.fid = fid};

	cfd_begin();
	if (generation != cfd_channel.generation)
	{
		memset(partitions, 0, sizeof(partitions));
		generation = cfd_channel.generation;
	}
	if (partitions[type] == 0)
	{
		bool		logged;
		uint32		partition = open_partition(InvalidOid, 0, -1, type, true, &logged);

		tell_logged(&partition, logged ? 1 : 0);
		partitions[type] = partition;
	}
	item.partition = partitions[type];
	cfd_promote(NULL, &item, 1);
	return item.fid;
}
