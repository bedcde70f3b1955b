/*
 * history.c
 *	  Row versions that were replaced or deleted; see ledger.h.
 *
 * They are inserted into the history table from here, below triggers and
 * rules, so that neither can withhold a version.
 *
 * Invariant: the version is stored in the history with all columns it had,
 * under the same names.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "executor/executor.h"
#include "ledger/ledger.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

bool		cfd_ledger_moving = false;

Oid
cfd_ledger_history(Relation table)
{
	char		name[NAMEDATALEN * 2];

	snprintf(name, sizeof(name), "%s" CFD_LEDGER_HISTORY_SUFFIX, RelationGetRelationName(table));
	return get_relname_relid(name, RelationGetNamespace(table));
}

/* The table whose history a relation is; otherwise the relation itself. */
Relation
cfd_ledger_table_of(Relation relation)
{
	char	   *name = pstrdup(RelationGetRelationName(relation));
	size_t		length = strlen(name);
	size_t		suffix = sizeof(CFD_LEDGER_HISTORY_SUFFIX) - 1;
	Oid			oid = RelationGetRelid(relation);

	if (cfd_columns(relation)->ledger.role == CFD_LEDGER_HISTORY && length > suffix)
	{
		name[length - suffix] = '\0';
		oid = get_relname_relid(name, RelationGetNamespace(relation));
	}
	return table_open(oid, AccessShareLock);
}

Relation
cfd_ledger_open_history(Relation table, LOCKMODE lock)
{
	Oid			oid = cfd_ledger_history(table);
	Relation	history = OidIsValid(oid) ? try_relation_open(oid, lock) : NULL;

	if (history == NULL || history->rd_rel->relkind != RELKIND_RELATION ||
		cfd_columns(history)->ledger.role != CFD_LEDGER_HISTORY)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ledger table \"%s\" has no history", RelationGetRelationName(table)),
				 errdetail("There is no table \"%s" CFD_LEDGER_HISTORY_SUFFIX "\" that is one.",
						   RelationGetRelationName(table))));
	return history;
}

/* Position of the column with this name in a row, or -1. */
static int
column_of(TupleDesc desc, Form_pg_attribute wanted, int likely)
{
	for (int n = 0; n <= desc->natts; n++)
	{
		int			i = n == 0 ? likely : n - 1;

		if (i < desc->natts && !TupleDescAttr(desc, i)->attisdropped &&
			strcmp(NameStr(TupleDescAttr(desc, i)->attname), NameStr(wanted->attname)) == 0)
			return i;
	}
	return -1;
}

static void
history_fill(Relation history, TupleTableSlot *slot, TupleTableSlot *before, TimestampTz until)
{
	CfdLedgerPlaces at = cfd_columns(history)->ledger;
	TupleDesc	desc = RelationGetDescr(history);
	TupleDesc	from = before->tts_tupleDescriptor;

	ExecClearTuple(slot);
	slot_getallattrs(before);
	for (int i = 0; i < desc->natts; i++)
	{
		int			column = -1;

		if (!TupleDescAttr(desc, i)->attisdropped && i != at.valid_to && i != at.ended_by)
			column = column_of(from, TupleDescAttr(desc, i), i);
		slot->tts_isnull[i] = column < 0 || before->tts_isnull[column];
		slot->tts_values[i] = column < 0 ? (Datum) 0 : before->tts_values[column];
	}
	slot->tts_values[at.valid_to] = TimestampTzGetDatum(until);
	slot->tts_isnull[at.valid_to] = false;
	slot->tts_values[at.ended_by] = CStringGetTextDatum(cfd_ledger_principal());
	slot->tts_isnull[at.ended_by] = false;
	ExecStoreVirtualTuple(slot);
}

static void
history_insert(Relation history, TupleTableSlot *slot)
{
	EState	   *estate = CreateExecutorState();
	ResultRelInfo *info = makeNode(ResultRelInfo);

	InitResultRelInfo(info, history, 0, NULL, 0);
	ExecOpenIndices(info, false);
	cfd_ledger_moving = true;
	PG_TRY();
	{
		ExecSimpleRelationInsert(info, estate, slot);
	}
	PG_FINALLY();
	{
		cfd_ledger_moving = false;
	}
	PG_END_TRY();
	ExecCloseIndices(info);
	FreeExecutorState(estate);
}

void
cfd_ledger_prepare(Relation table, CfdLedgerBefore *before, TimestampTz until)
{
	before->history = cfd_ledger_open_history(table, RowExclusiveLock);
	before->past = MakeSingleTupleTableSlot(RelationGetDescr(before->history), &TTSOpsVirtual);
	history_fill(before->history, before->past, before->version, until);
}

void
cfd_ledger_move(const CfdLedgerBefore *before)
{
	history_insert(before->history, before->past);
}

void
cfd_ledger_free(CfdLedgerBefore *before)
{
	if (before->past != NULL)
		ExecDropSingleTupleTableSlot(before->past);
	if (before->history != NULL)
		table_close(before->history, NoLock);
	if (before->version != NULL)
		ExecDropSingleTupleTableSlot(before->version);
}
