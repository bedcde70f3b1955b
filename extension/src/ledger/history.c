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
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "executor/executor.h"
#include "ledger/ledger.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
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

/* Whether a relation is the history that belongs to a table, by its name. */
static bool
is_history_of(Relation history, Relation table)
{
	const char *name = RelationGetRelationName(table);
	size_t		length = strlen(name);

	return history->rd_rel->relkind == RELKIND_RELATION &&
		cfd_columns(history)->ledger.role == CFD_LEDGER_HISTORY &&
		RelationGetNamespace(history) == RelationGetNamespace(table) &&
		strncmp(RelationGetRelationName(history), name, length) == 0 &&
		strcmp(RelationGetRelationName(history) + length, CFD_LEDGER_HISTORY_SUFFIX) == 0;
}

/* Opens a relation if it is the table's history, otherwise returns NULL. */
static Relation
open_if_history(Oid oid, Relation table, LOCKMODE lock)
{
	Relation	history = OidIsValid(oid) ? try_relation_open(oid, lock) : NULL;

	if (history == NULL || is_history_of(history, table))
		return history;
	relation_close(history, lock);
	return NULL;
}

/* The history that was opened last, if the transaction has locked it already; otherwise NULL. */
static Relation
history_locked(Relation table, LOCKMODE lock)
{
	Oid			oid = cfd_columns(table)->history;
	Relation	history = OidIsValid(oid) ? RelationIdGetRelation(oid) : NULL;

	if (history == NULL || (CheckRelationLockedByMe(history, lock, false) && is_history_of(history, table)))
		return history;
	RelationClose(history);
	return NULL;
}

Relation
cfd_ledger_open_history(Relation table, LOCKMODE lock)
{
	Relation	history = history_locked(table, lock);

	if (history != NULL)
		return history;
	history = open_if_history(cfd_columns(table)->history, table, lock);
	if (history == NULL)
		history = open_if_history(cfd_ledger_history(table), table, lock);
	if (history == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ledger table \"%s\" has no history", RelationGetRelationName(table)),
				 errdetail("There is no table \"%s" CFD_LEDGER_HISTORY_SUFFIX "\" that is one.",
						   RelationGetRelationName(table))));
	/* The next time it need not be looked for in the catalog. */
	((CfdColumns *) cfd_columns(table))->history = RelationGetRelid(history);
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

/* Whether the history has indexes or constraints that the row must go through: by default it has none. */
static bool
needs_executor(Relation history, TupleTableSlot *slot)
{
	TupleDesc	desc = RelationGetDescr(history);

	if (history->rd_rel->relhasindex || (desc->constr != NULL && desc->constr->num_check > 0))
		return true;
	for (int i = 0; i < desc->natts; i++)
	{
		if (slot->tts_isnull[i] && TupleDescAttr(desc, i)->attnotnull)
			return true;
	}
	return false;
}

static void
insert_by_executor(Relation history, TupleTableSlot *slot)
{
	EState	   *estate = CreateExecutorState();
	ResultRelInfo *info = makeNode(ResultRelInfo);

	InitResultRelInfo(info, history, 0, NULL, 0);
	info->ri_TrigDesc = NULL;
	ExecOpenIndices(info, false);
	ExecSimpleRelationInsert(info, estate, slot);
	ExecCloseIndices(info);
	FreeExecutorState(estate);
}

static void
history_insert(Relation history, TupleTableSlot *slot)
{
	cfd_ledger_moving = true;
	PG_TRY();
	{
		if (needs_executor(history, slot))
			insert_by_executor(history, slot);
		else
			simple_table_tuple_insert(history, slot);
	}
	PG_FINALLY();
	{
		cfd_ledger_moving = false;
	}
	PG_END_TRY();
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
