/*
 * rows.c
 *	  Rows that are written to ledger tables: see ledger.h.
 *
 * The columns sn, valid_from and by of a ledger table are generated columns, so nobody can write to
 * them. Their values are set here, regardless of their expressions.
 *
 * Invariant: as in ledger.h. Nothing is written without a client.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "ledger/ledger.h"
#include "session/channel.h"
#include "session/ticket.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

static void
need_client(Relation relation)
{
	if (!cfd_channel.had_client)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("confide: no client session"),
				 errdetail("Rows of ledger table \"%s\" have an author, who is a client.",
						   RelationGetRelationName(relation)),
				 errhint("Connect through the Confide proxy.")));
}

static void
refuse_history(Relation relation)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("history \"%s\" of a ledger table cannot be changed", RelationGetRelationName(relation)),
			 errhint("To erase versions, DELETE FROM the table WHERE sn = or <= a number; to restore a dump's histories, "
					 "set confide.restore_ticket to what \"confide restore-ticket\" prints.")));
}

/*
 * The relation's role if its rows get entries; the rows of a rewrite are no new versions. "ends": a
 * row is replaced or removed.
 */
static CfdLedgerRole
role_written(Relation relation, bool ends)
{
	CfdLedgerRole role;

	if (OidIsValid(relation->rd_rel->relrewrite))
		return CFD_NO_LEDGER;
	role = cfd_columns(relation)->ledger.role;
	if (role == CFD_LEDGER_HISTORY && !cfd_ledger_moving && !(ends ? cfd_ledger_may_erase(relation) : cfd_has_ticket()))
		refuse_history(relation);
	return role;
}

/* Whether written rows get entries; not for rows moved to a history by the table's own change. */
static bool
is_logged(Relation relation)
{
	CfdLedgerRole role = role_written(relation, false);

	return role == CFD_LEDGER_TABLE || (role == CFD_LEDGER_HISTORY && !cfd_ledger_moving);
}

static bool
is_history(Relation relation)
{
	return cfd_columns(relation)->ledger.role == CFD_LEDGER_HISTORY;
}

CfdLedgerBefore
cfd_ledger_before(Relation relation, ItemPointer old)
{
	CfdLedgerBefore before = {0};

	if (role_written(relation, true) == CFD_NO_LEDGER)
		return before;
	need_client(relation);
	before.version = table_slot_create(relation, NULL);
	if (!table_tuple_fetch_row_version(relation, old, SnapshotAny, before.version))
		elog(ERROR, "could not fetch the version of a row that is replaced");
	slot_getallattrs(before.version);
	return before;
}

static TimestampTz
time_of(Relation relation, TupleTableSlot *slot)
{
	int			index = cfd_columns(relation)->ledger.valid_from;

	slot_getallattrs(slot);
	return slot->tts_isnull[index] ? 0 : DatumGetTimestampTz(slot->tts_values[index]);
}

/* A version is never valid before its predecessor. */
static TimestampTz
time_after(Relation relation, const CfdLedgerBefore *before)
{
	TimestampTz now = cfd_ledger_time();

	return before == NULL ? now : Max(now, time_of(relation, before->version));
}

/* Whether the slot has more than an array of values. */
static bool
has_tuple(TupleTableSlot *slot)
{
	if (TTS_IS_HEAPTUPLE(slot) || TTS_IS_BUFFERTUPLE(slot))
		return ((HeapTupleTableSlot *) slot)->tuple != NULL;
	return !TTS_IS_VIRTUAL(slot);
}

/* A restored row of a history gets only a number; author and times are those of the dump. */
static void
stamp(Relation relation, TupleTableSlot *slot, TimestampTz time, Datum by)
{
	CfdLedgerPlaces at = cfd_columns(relation)->ledger;
	MemoryContext old;
	HeapTuple	tuple;
	ItemPointerData tid;

	slot_getallattrs(slot);
	slot->tts_values[at.sn] = Int64GetDatum(cfd_ledger_new_number());
	slot->tts_isnull[at.sn] = false;
	if (at.role == CFD_LEDGER_TABLE)
	{
		slot->tts_values[at.valid_from] = TimestampTzGetDatum(time);
		slot->tts_values[at.by] = by;
		slot->tts_isnull[at.valid_from] = slot->tts_isnull[at.by] = false;
	}
	if (!has_tuple(slot))
		return;
	/* The tuple in the slot would have the old values. */
	tid = slot->tts_tid;
	old = MemoryContextSwitchTo(slot->tts_mcxt);
	tuple = heap_form_tuple(slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull);
	tuple->t_self = tid;
	tuple->t_tableOid = slot->tts_tableOid;
	MemoryContextSwitchTo(old);
	ExecForceStoreHeapTuple(tuple, slot, true);
	slot->tts_tid = tid;
}

void
cfd_ledger_stamp(Relation relation, TupleTableSlot **slots, int count, CfdLedgerBefore *before)
{
	TimestampTz time;
	Datum		by;

	if (!is_logged(relation))
		return;
	if (before != NULL && is_history(relation))
		refuse_history(relation);
	need_client(relation);
	if (relation->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("ledger table \"%s\" is temporary or unlogged", RelationGetRelationName(relation))));
	time = time_after(relation, before);
	by = CStringGetTextDatum(cfd_ledger_principal());
	for (int i = 0; i < count; i++)
		stamp(relation, slots[i], time, by);
	if (before != NULL)
		cfd_ledger_prepare(relation, before, time);
}

int64
cfd_ledger_number(Relation relation, TupleTableSlot *slot)
{
	int			index = cfd_columns(relation)->ledger.sn;

	slot_getallattrs(slot);
	return slot->tts_isnull[index] ? 0 : DatumGetInt64(slot->tts_values[index]);
}

/* Versions of a dump's history go to the table's log. */
static void
restored(Relation history, TupleTableSlot **slots, int count)
{
	Relation	table = cfd_ledger_table_of(history);

	if (cfd_columns(table)->ledger.role != CFD_LEDGER_TABLE)
		refuse_history(history);
	for (int i = 0; i < count; i++)
	{
		CfdWireLedgerRow head = {.what = CFD_LEDGER_RESTORE,.log = cfd_open_log(table)};

		head.number = cfd_ledger_next();
		cfd_ledger_send(table, history, slots[i], &head);
	}
	table_close(table, NoLock);
}

void
cfd_ledger_written(Relation relation, TupleTableSlot **slots, int count, CfdLedgerBefore *before)
{
	if (!is_logged(relation))
		return;
	if (is_history(relation))
	{
		restored(relation, slots, count);
		return;
	}
	for (int i = 0; i < count; i++)
	{
		CfdWireLedgerRow head = {.what = CFD_LEDGER_WRITE,.log = cfd_open_log(relation)};

		if (before != NULL)
			head.other = cfd_ledger_number(relation, before->version);
		head.number = cfd_ledger_next();
		cfd_ledger_send(relation, relation, slots[i], &head);
	}
	if (before != NULL)
		cfd_ledger_move(before);
}

void
cfd_ledger_deleted(Relation relation, CfdLedgerBefore *before)
{
	CfdWireLedgerRow head = {.what = CFD_LEDGER_END};
	Relation	table = relation;

	if (cfd_columns(relation)->ledger.role == CFD_LEDGER_HISTORY)
	{
		/* The log is that of the table. */
		table = cfd_ledger_table_of(relation);
		cfd_ledger_erased(relation, cfd_ledger_number(relation, before->version));
		head.what = CFD_LEDGER_ERASE;
	}
	head.sn = cfd_ledger_number(relation, before->version);
	head.time = table == relation ? time_after(relation, before) : cfd_ledger_time();
	head.log = cfd_open_log(table);
	head.number = cfd_ledger_next();
	cfd_ledger_send_end(table, &head);
	if (table != relation)
	{
		table_close(table, NoLock);
		return;
	}
	cfd_ledger_prepare(relation, before, head.time);
	cfd_ledger_move(before);
}
