/*
 * bulk.c
 *	  Batching of rows that fill a new table; see bulk.h.
 *
 * Only one table is filled at a time. Rows of another table, which a function
 * in the query fills meanwhile, are written directly. So are the rows of a
 * COPY, which uses their TIDs.
 *
 * Invariants: as in bulk.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "executor/tuptable.h"
#include "tableam/bulk.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "value/place.h"
#include "value/promote.h"

#define BULK_ROWS_MAX 1024
#define BULK_BYTES_MAX (512 * 1024)

typedef struct Bulk
{
	MemoryContext context;		/* NULL: no table is being filled */
	MemoryContextCallback callback;
	Oid			relation;
	CommandId	cid;
	int			options;
	CfdWriteRows write;
	TupleDesc	desc;			/* a copy: the relation's own may be freed before the slots */
	int			count;
	int			made;
	Size		bytes;
	TupleTableSlot *slots[BULK_ROWS_MAX];
} Bulk;

static Bulk bulk;

/*
 * Memory context callback: the transaction or subtransaction that fills the
 * table has ended.
 */
static void
bulk_forget(void *unused)
{
	bulk.context = NULL;
	bulk.count = bulk.made = 0;
}

static void
bulk_before_commit(XactEvent event, void *unused)
{
	if ((event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE) && bulk.count > 0)
		elog(ERROR, "rows of table %u were held back and not written", bulk.relation);
}

static void
bulk_begin(Relation relation, CommandId cid, int options, CfdWriteRows write)
{
	static bool registered = false;

	if (!registered)
		RegisterXactCallback(bulk_before_commit, NULL);
	registered = true;
	bulk.context = AllocSetContextCreate(CurTransactionContext, "Confide bulk insert", ALLOCSET_DEFAULT_SIZES);
	bulk.callback.func = bulk_forget;
	MemoryContextRegisterResetCallback(bulk.context, &bulk.callback);
	bulk.relation = RelationGetRelid(relation);
	bulk.cid = cid;
	bulk.options = options;
	bulk.write = write;
	bulk.count = bulk.made = 0;
	bulk.bytes = 0;
	bulk.desc = NULL;
}

static void
bulk_write(Relation relation, BulkInsertState bistate)
{
	int			count = bulk.count;

	bulk.count = 0;
	bulk.bytes = 0;
	if (count > 0)
		bulk.write(relation, bulk.slots, count, bulk.cid, bulk.options, bistate);
}

static void
bulk_add(Relation relation, TupleTableSlot *row)
{
	TupleDesc	desc = RelationGetDescr(relation);
	TupleTableSlot *slot;

	if (bulk.count == bulk.made)
	{
		MemoryContext before = MemoryContextSwitchTo(bulk.context);

		if (bulk.desc == NULL)
			bulk.desc = CreateTupleDescCopy(desc);
		bulk.slots[bulk.made++] = MakeSingleTupleTableSlot(bulk.desc, &TTSOpsVirtual);
		MemoryContextSwitchTo(before);
	}
	slot = bulk.slots[bulk.count++];
	ExecCopySlot(slot, row);
	slot->tts_tableOid = RelationGetRelid(relation);
	bulk.bytes += heap_compute_data_size(desc, slot->tts_values, slot->tts_isnull);
}

bool
cfd_bulk_take(Relation relation, TupleTableSlot *slot, CommandId cid, int options, BulkInsertState bistate,
			  CfdWriteRows write)
{
	if (bistate == NULL || (options & TABLE_INSERT_SKIP_FSM) == 0 || cfd_mode == CFD_MODE_COPY ||
		!cfd_holds_fids(cfd_columns(relation)))
		return false;
	if (bulk.context == NULL)
		bulk_begin(relation, cid, options, write);
	if (bulk.relation != RelationGetRelid(relation) || bulk.cid != cid || bulk.options != options)
		return false;
	bulk_add(relation, slot);
	if (bulk.count == BULK_ROWS_MAX || bulk.bytes >= BULK_BYTES_MAX)
		bulk_write(relation, bistate);
	return true;
}

void
cfd_bulk_finish(Relation relation)
{
	if (bulk.context == NULL || bulk.relation != RelationGetRelid(relation))
		return;
	/* The caller has already freed its BulkInsertState. */
	bulk_write(relation, NULL);
	MemoryContextDelete(bulk.context);
}
