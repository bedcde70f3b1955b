/*
 * check.c
 *	  SQL functions for walks over ledger tables, checkpoints, proofs and
 *	  receipts (docs/ledger.md).
 *
 * A walk sends every row version of the table and its history to the keeper.
 * The keeper reports what is wrong in a signed report that only the client can
 * read.
 *
 * Invariant: the snapshot is taken after the keeper has reported the length of
 * the log, so that every version whose transaction had committed by then is
 * seen.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "fmgr.h"
#include "ledger/ledger.h"
#include "miscadmin.h"
#include "session/channel.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Interval of progress reports to the client, in row versions. */
#define PROGRESS_ROWS 100000

static Relation
open_ledger(Oid oid, LOCKMODE lock)
{
	Relation	table = table_open(oid, lock);

	if (table->rd_rel->relkind != RELKIND_RELATION || cfd_columns(table)->ledger.role != CFD_LEDGER_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a ledger table", RelationGetRelationName(table))));
	return table;
}

static Relation
open_readable(Oid oid)
{
	Relation	table = open_ledger(oid, AccessShareLock);

	if (pg_class_aclcheck(oid, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, RelationGetRelationName(table));
	return table;
}

static void
walk(Relation table, Relation relation, Snapshot snapshot, CfdWireLedgerRow row, uint64 first, uint64 *rows)
{
	TupleTableSlot *slot = table_slot_create(relation, NULL);
	TableScanDesc scan = table_beginscan(relation, snapshot, 0, NULL);

	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		CfdWireLedgerRow head = row;

		CHECK_FOR_INTERRUPTS();
		head.log = cfd_open_log(table);
		head.number = cfd_ledger_number(relation, slot) < first;
		cfd_ledger_send(table, relation, slot, &head);
		if (++*rows % PROGRESS_ROWS == 0)
			ereport(NOTICE, (errmsg(UINT64_FORMAT " row versions of \"%s\" read",
									*rows, RelationGetRelationName(table))));
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
}

/* Starts a walk. Returns the number of the first version whose columns are compared. */
static uint64
begin_walk(Relation table, uint64 since)
{
	CfdWireLedgerCheck body = {.log = cfd_open_log(table),.since = since};
	CfdReadLedgerCheckAnswer read;
	uint32		length;
	char	   *names = cfd_ledger_names(table, &length);
	const char *answer = cfd_call(CFD_KIND_LEDGER_CHECK, &body, sizeof(body), names, length, &length);

	CFD_DECODE(ledger_check_answer, answer, length, &read);
	pfree(names);
	return read.head.first;
}

/* A missing history counts as empty, so the keeper finds its rows missing. */
static void
walk_both(Relation table, uint64 since)
{
	Oid			oid = cfd_ledger_history(table);
	Relation	history = OidIsValid(oid) ? try_relation_open(oid, AccessShareLock) : (Relation) NULL;
	Snapshot	snapshot;
	uint64		first = begin_walk(table, since);
	uint64		rows = 0;

	snapshot = RegisterSnapshot(GetLatestSnapshot());
	walk(table, table, snapshot, (CfdWireLedgerRow) {.what = CFD_LEDGER_CURRENT}, first, &rows);
	if (history != NULL && history->rd_rel->relkind == RELKIND_RELATION &&
		cfd_columns(history)->ledger.role == CFD_LEDGER_HISTORY)
		walk(table, history, snapshot, (CfdWireLedgerRow) {.what = CFD_LEDGER_PAST}, first, &rows);
	UnregisterSnapshot(snapshot);
	if (history != NULL)
		relation_close(history, AccessShareLock);
}

PG_FUNCTION_INFO_V1(cfd_ledger_report);
Datum
cfd_ledger_report(PG_FUNCTION_ARGS)
{
	Relation	table = open_readable(PG_GETARG_OID(0));
	CfdWireLedgerReport body = {.nonce = DatumGetUInt64(PG_GETARG_DATUM(1)),.old = PG_GETARG_INT64(2)};
	uint32		length;

	walk_both(table, PG_GETARG_BOOL(3) ? body.old : 0);
	cfd_begin();
	body.to = cfd_new_slot(CFD_STATEMENT);
	(void) cfd_call(CFD_KIND_LEDGER_REPORT, &body, sizeof(body), NULL, 0, &length);
	table_close(table, AccessShareLock);
	PG_RETURN_DATUM(UInt64GetDatum(body.to));
}

static Datum
prove(Oid oid, uint32 what, uint64 number)
{
	Relation	table = open_readable(oid);
	CfdWireLedgerProve body = {.log = cfd_open_log(table),.what = what,.number = number};
	CfdReadLedgerProveAnswer read;
	uint32		length;
	const char *answer = cfd_call(CFD_KIND_LEDGER_PROVE, &body, sizeof(body), NULL, 0, &length);

	CFD_DECODE(ledger_prove_answer, answer, length, &read);
	table_close(table, AccessShareLock);
	return PointerGetDatum(cstring_to_text_with_len((const char *) read.text, read.text_length));
}

PG_FUNCTION_INFO_V1(cfd_ledger_checkpoint);
Datum
cfd_ledger_checkpoint(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(prove(PG_GETARG_OID(0), CFD_LEDGER_CHECKPOINT, 0));
}

PG_FUNCTION_INFO_V1(cfd_ledger_consistency);
Datum
cfd_ledger_consistency(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(prove(PG_GETARG_OID(0), CFD_LEDGER_CONSISTENCY, PG_GETARG_INT64(1)));
}

PG_FUNCTION_INFO_V1(cfd_ledger_inclusion);
Datum
cfd_ledger_inclusion(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(prove(PG_GETARG_OID(0), CFD_LEDGER_INCLUSION, PG_GETARG_INT64(1)));
}

PG_FUNCTION_INFO_V1(cfd_ledger_receipt);
Datum
cfd_ledger_receipt(PG_FUNCTION_ARGS)
{
	CfdWireLedgerReceipt body = {.nonce = DatumGetUInt64(PG_GETARG_DATUM(0))};
	uint32		length;

	cfd_begin();
	body.to = cfd_new_slot(CFD_STATEMENT);
	(void) cfd_call(CFD_KIND_LEDGER_RECEIPT, &body, sizeof(body), NULL, 0, &length);
	PG_RETURN_DATUM(UInt64GetDatum(body.to));
}
