/*
 * rotate.c
 *	  Changing the key of a column of the family rnd_ while the table is in
 *	  use: cells under older keys are sealed anew, some pages at a time. The
 *	  command "confide rotate-column" calls these functions (docs/families.md).
 *
 * Which key cells are sealed with, and which others still open them, is the
 * keeper's; here only rows are changed. Constraints and triggers are not
 * called, since the values remain the same.
 *
 * Invariant: a row version is replaced only while it is locked and the latest
 * one, so no concurrent change is lost; nothing but the cell is changed.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "cell/cell.h"
#include "compat/compat.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "ledger/ledger.h"
#include "miscadmin.h"
#include "session/channel.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/xid8.h"

/* Limits of what one message has. */
#define CELLS_MAX 256
#define BYTES_MAX (4 * 1024 * 1024)

/* A column whose key is being changed. */
typedef struct Turn
{
	Relation	relation;
	AttrNumber	attribute;
	uint8		type;
	bool		token;
	int32		typmod;
	/* What cells under the present key have in their headers. */
	unsigned char identity[CFD_CELL_COLUMN_BYTES];
	unsigned char generation[CFD_CELL_GENERATION_BYTES];
	bool		turning;
	/* What was done. */
	int64		resealed;
	int64		failed;
	int32		highest;
	EState	   *estate;
	ResultRelInfo *result;
} Turn;

/* Asks the keeper for the present key. */
static void
ask_key(Turn *turn)
{
	CfdCellColumn *column = cfd_cell_column(turn->typmod);
	CfdReadCellKeyAnswer read;
	const char *answer;
	uint32		length;

	cfd_begin();
	answer = cfd_call(CFD_KIND_CELL_KEY, NULL, 0, column->names, column->length, &length);
	CFD_DECODE(cell_key_answer, answer, length, &read);
	if (read.column_length != CFD_CELL_COLUMN_BYTES)
		cfd_violation("malformed name of a column");
	memcpy(turn->identity, read.column, CFD_CELL_COLUMN_BYTES);
	for (int i = 0; i < CFD_CELL_GENERATION_BYTES; i++)
		turn->generation[i] = (unsigned char) (read.head.generation >> (8 * i));
	turn->turning = read.head.turning != 0;
}

static void
rotate_refuse(Relation relation, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("the keys of columns of \"%s\" cannot be changed here", RelationGetRelationName(relation)),
			 errdetail("%s", detail),
			 errhint("%s", hint)));
}

static void
turn_open(Turn *turn, Oid oid, const char *name, LOCKMODE mode)
{
	Relation	relation = table_open(oid, mode);
	Form_pg_attribute attribute;

	memset(turn, 0, sizeof(*turn));
	turn->relation = relation;
	if (!CFD_OWNS(oid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(relation->rd_rel->relkind),
					   RelationGetRelationName(relation));
	if (relation->rd_rel->relkind != RELKIND_RELATION)
		rotate_refuse(relation, "It is not a table with rows.", "Name its partitions one by one.");
	if (OidIsValid(cfd_ledger_history(relation)))
		rotate_refuse(relation, "Rows of a ledger table are not replaced.", "Copy the table to a new one.");
	if (IsolationUsesXactSnapshot())
		rotate_refuse(relation, "The transaction does not see what others have changed.", "Use READ COMMITTED.");
	turn->attribute = get_attnum(oid, name);
	if (turn->attribute <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist", name, RelationGetRelationName(relation))));
	attribute = TupleDescAttr(RelationGetDescr(relation), turn->attribute - 1);
	turn->type = cfd_cell_code(attribute->atttypid);
	turn->typmod = attribute->atttypmod;
	if (turn->type == 0 || !cfd_cell_numbered(turn->typmod))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("column \"%s\" of relation \"%s\" is not of the family rnd_", name,
						RelationGetRelationName(relation)),
				 errhint("Only columns of this family have keys of their own in the keeper.")));
	turn->token = cfd_cell_has_token(attribute->atttypid);
	ask_key(turn);
}

static int32
generation_of(const struct varlena *cell)
{
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(cell) + CFD_CELL_GENERATION_AT;

	return cfd_cell_is_sealed(cell) ? bytes[0] | bytes[1] << 8 | bytes[2] << 16 : 0;
}

/* A copy of the cell of a row if it is under another key, otherwise NULL. */
static struct varlena *
old_cell(const Turn *turn, TupleTableSlot *slot)
{
	bool		isnull;
	Datum		value = slot_getattr(slot, turn->attribute, &isnull);
	struct varlena *cell;
	const char *bytes;

	if (isnull)
		return NULL;
	cell = (struct varlena *) PG_DETOAST_DATUM_COPY(value);
	bytes = VARDATA_ANY(cell);
	if (cfd_cell_is_sealed(cell) &&
		memcmp(bytes + 2, turn->identity, CFD_CELL_COLUMN_BYTES) == 0 &&
		memcmp(bytes + CFD_CELL_GENERATION_AT, turn->generation, CFD_CELL_GENERATION_BYTES) == 0)
	{
		pfree(cell);
		return NULL;
	}
	return cell;
}

/* ---------- sealing anew ---------- */

/* Rows that are locked, and the message with their cells. */
typedef struct Batch
{
	int			count;
	ItemPointerData rows[CELLS_MAX];
	StringInfoData message;
} Batch;

/* Locks the latest version of a row and takes its cell, if that is still an old one. */
static void
rotate_take_row(Turn *turn, Batch *group, ItemPointer row, TupleTableSlot *slot)
{
	TM_FailureData failure;
	TM_Result	result;
	struct varlena *cell;
	uint32		length;

	result = table_tuple_lock(turn->relation, row, GetLatestSnapshot(), slot, GetCurrentCommandId(false),
							  LockTupleNoKeyExclusive, LockWaitBlock, TUPLE_LOCK_FLAG_FIND_LAST_VERSION, &failure);
	if (result == TM_Deleted)
		return;
	if (result != TM_Ok)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("a row of \"%s\" was moved concurrently", RelationGetRelationName(turn->relation))));
	cell = old_cell(turn, slot);
	if (cell == NULL)
		return;
	length = VARSIZE_ANY_EXHDR(cell);
	appendBinaryStringInfo(&group->message, (const char *) &length, sizeof(length));
	appendBinaryStringInfo(&group->message, VARDATA_ANY(cell), length);
	pfree(cell);
	group->rows[group->count++] = slot->tts_tid;
}

/* Puts a new cell into a locked row. */
static void
replace_cell(Turn *turn, ItemPointer row, TupleTableSlot *old, TupleTableSlot *new, const CfdReadSealedCell *sealed)
{
	struct varlena *cell = palloc(VARHDRSZ + sealed->cell_length);
	int			natts = RelationGetDescr(turn->relation)->natts;
	CfdUpdateIndexes update_indexes;

	SET_VARSIZE(cell, VARHDRSZ + sealed->cell_length);
	memcpy(VARDATA(cell), sealed->cell, sealed->cell_length);
	cfd_cell_check(cell, turn->type);
	if (!table_tuple_fetch_row_version(turn->relation, row, SnapshotAny, old))
		elog(ERROR, "a locked row of \"%s\" is gone", RelationGetRelationName(turn->relation));
	slot_getallattrs(old);
	ExecClearTuple(new);
	memcpy(new->tts_values, old->tts_values, natts * sizeof(Datum));
	memcpy(new->tts_isnull, old->tts_isnull, natts * sizeof(bool));
	new->tts_values[turn->attribute - 1] = PointerGetDatum(cell);
	ExecStoreVirtualTuple(new);
	new->tts_tableOid = RelationGetRelid(turn->relation);
	simple_table_tuple_update(turn->relation, row, new, GetLatestSnapshot(), &update_indexes);
	if (CFD_INDEXES_CHANGED(update_indexes))
		(void) CFD_INSERT_INDEX_TUPLES(turn->result, new, turn->estate);
	ResetPerTupleExprContext(turn->estate);
	turn->resealed++;
}

static void
reseal_group(Turn *turn, Batch *group, TupleTableSlot *old, TupleTableSlot *new)
{
	CfdCellColumn *column = cfd_cell_column(turn->typmod);
	CfdWireCellReseal body = {.t = turn->type,.length = column->length};
	CfdReadCellResealAnswer read;
	StringInfoData tail;
	const char *answer;
	char	   *kept;
	uint32		length;

	if (group->count == 0)
		return;
	body.flags = turn->token ? CFD_CELL_WITH_TOKEN : 0;
	initStringInfo(&tail);
	appendBinaryStringInfo(&tail, column->names, column->length);
	appendBinaryStringInfo(&tail, group->message.data, group->message.len);
	cfd_begin();
	answer = cfd_call(CFD_KIND_CELL_RESEAL, &body, sizeof(body), tail.data, tail.len, &length);
	pfree(tail.data);
	/* Inserting into indexes asks the keeper, too. */
	kept = MemoryContextAllocHuge(CurrentMemoryContext, Max(length, 1));
	memcpy(kept, answer, length);
	CFD_DECODE(cell_reseal_answer, kept, length, &read);
	for (int i = 0; i < group->count; i++)
	{
		CfdReadSealedCell sealed;

		if (!cfd_read_sealed_cell(&read.cells, &sealed))
			cfd_violation("too few cells");
		if (sealed.cell_length == 0)
			turn->failed++;
		else
			replace_cell(turn, &group->rows[i], old, new, &sealed);
	}
	pfree(kept);
	resetStringInfo(&group->message);
	group->count = 0;
}

/* Locations of the rows in some pages that have old cells. */
static ItemPointerData *
find_rows(Turn *turn, BlockNumber first, BlockNumber blocks, int *count)
{
	TupleTableSlot *slot = table_slot_create(turn->relation, NULL);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ItemPointerData low;
	ItemPointerData high;
	TableScanDesc scan;
	int			room = 256;
	ItemPointerData *rows = palloc(room * sizeof(ItemPointerData));
	struct varlena *cell;

	*count = 0;
	ItemPointerSet(&low, first, 1);
	ItemPointerSet(&high, first + blocks - 1, MaxOffsetNumber);
	scan = table_beginscan_tidrange(turn->relation, snapshot, &low, &high);
	while (table_scan_getnextslot_tidrange(scan, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		cell = old_cell(turn, slot);
		if (cell == NULL)
			continue;
		turn->highest = Max(turn->highest, generation_of(cell));
		pfree(cell);
		if (*count == room)
		{
			room *= 2;
			rows = repalloc_huge(rows, room * sizeof(ItemPointerData));
		}
		rows[(*count)++] = slot->tts_tid;
	}
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	ExecDropSingleTupleTableSlot(slot);
	return rows;
}

static void
reseal_rows(Turn *turn, ItemPointerData *rows, int count)
{
	TupleTableSlot *old = table_slot_create(turn->relation, NULL);
	TupleTableSlot *new = MakeSingleTupleTableSlot(RelationGetDescr(turn->relation), &TTSOpsVirtual);
	Batch		group = {0};

	turn->estate = CreateExecutorState();
	turn->result = makeNode(ResultRelInfo);
	InitResultRelInfo(turn->result, turn->relation, 0, NULL, 0);
	ExecOpenIndices(turn->result, false);
	initStringInfo(&group.message);
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		rotate_take_row(turn, &group, &rows[i], old);
		if (group.count == CELLS_MAX || group.message.len >= BYTES_MAX)
			reseal_group(turn, &group, old, new);
	}
	reseal_group(turn, &group, old, new);
	ExecCloseIndices(turn->result);
	FreeExecutorState(turn->estate);
	ExecDropSingleTupleTableSlot(old);
	ExecDropSingleTupleTableSlot(new);
}

/*
 * confide.rotate_batch(relation, column, first page, pages): seals the old
 * cells in these pages anew. Returns the page to go on with, or NULL at the
 * end; how many cells were sealed, and how many could not be opened.
 */
PG_FUNCTION_INFO_V1(cfd_rotate_batch);
Datum
cfd_rotate_batch(PG_FUNCTION_ARGS)
{
	int64		first = PG_GETARG_INT64(2);
	int32		blocks = PG_GETARG_INT32(3);
	Datum		values[3] = {0};
	bool		nulls[3] = {false};
	TupleDesc	desc;
	Turn		turn;
	int64		end;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (first < 0 || blocks <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there are no such pages")));
	turn_open(&turn, PG_GETARG_OID(0), NameStr(*PG_GETARG_NAME(1)), RowExclusiveLock);
	if (!turn.turning)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the key of the column is not being changed"),
				 errhint("Use \"confide rotate-column\".")));
	end = RelationGetNumberOfBlocks(turn.relation);
	if (first < end)
	{
		int			count;
		ItemPointerData *rows = find_rows(&turn, (BlockNumber) first, (BlockNumber) Min(blocks, end - first), &count);

		reseal_rows(&turn, rows, count);
		pfree(rows);
	}
	table_close(turn.relation, NoLock);
	values[0] = Int64GetDatum(first + blocks);
	nulls[0] = first + blocks >= end;
	values[1] = Int64GetDatum(turn.resealed);
	values[2] = Int64GetDatum(turn.failed);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * confide.rotate_left(relation, column): number of rows with old cells, in one
 * snapshot; the highest generation that any of these cells has.
 */
PG_FUNCTION_INFO_V1(cfd_rotate_left);
Datum
cfd_rotate_left(PG_FUNCTION_ARGS)
{
	Datum		values[2];
	bool		nulls[2] = {false};
	TupleDesc	desc;
	Turn		turn;
	int			count = 0;
	BlockNumber blocks;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	turn_open(&turn, PG_GETARG_OID(0), NameStr(*PG_GETARG_NAME(1)), AccessShareLock);
	blocks = RelationGetNumberOfBlocks(turn.relation);
	if (blocks > 0)
		pfree(find_rows(&turn, 0, blocks, &count));
	table_close(turn.relation, NoLock);
	values[0] = Int64GetDatum(count);
	values[1] = Int32GetDatum(turn.highest);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/* ---------- waiting for others ---------- */

/*
 * confide.rotate_announce(relation): makes all sessions ask again which key the
 * cells of its columns have.
 */
PG_FUNCTION_INFO_V1(cfd_rotate_announce);
Datum
cfd_rotate_announce(PG_FUNCTION_ARGS)
{
	Oid			oid = PG_GETARG_OID(0);

	if (!CFD_OWNS(oid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, get_rel_name(oid));
	CacheInvalidateRelcacheByRelid(oid);
	PG_RETURN_VOID();
}

/*
 * confide.rotate_snapshots(limit): transactions of other sessions of this
 * database with snapshots that may be older than this transaction number, as
 * in pg_locks.virtualtransaction.
 */
PG_FUNCTION_INFO_V1(cfd_rotate_snapshots);
Datum
cfd_rotate_snapshots(PG_FUNCTION_ARGS)
{
	TransactionId limit = XidFromFullTransactionId(PG_GETARG_FULLTRANSACTIONID(0));
	int			count;
	VirtualTransactionId *found = GetCurrentVirtualXIDs(limit, true, false, PROC_IS_AUTOVACUUM | PROC_IN_VACUUM,
														&count);
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < count; i++)
		appendStringInfo(&list, "%s%d/%u", i > 0 ? " " : "", CFD_VIRTUAL_PROC(found[i]), found[i].localTransactionId);
	PG_RETURN_TEXT_P(cstring_to_text(list.data));
}
