/*
 * checks.c
 *	  Check constraints of ledger tables; see hooks.h.
 *
 * A check is made before a row is written, and only then its number, time and
 * author are known (ledger/computed.c). So a check of these would be made of
 * NULL, which passes most of them.
 *
 * Invariant: no statement adds such a constraint, however it is written.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "hooks/hooks.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "value/types.h"

/* Numbers of a ledger table's own columns; none: it is not one. Of a table with partitions, too. */
static Bitmapset *
checks_own_columns(Oid table)
{
	static const char *const names[] = {"sn", "valid_from", "by"};
	AttrNumber	numbers[lengthof(names)];
	Bitmapset  *found = NULL;
	bool		ledger = false;

	for (int i = 0; i < lengthof(names); i++)
	{
		numbers[i] = get_attnum(table, names[i]);
		if (numbers[i] == InvalidAttrNumber)
			return NULL;
		found = bms_add_member(found, numbers[i]);
		ledger = ledger || cfd_ledger_role(get_atttype(table, numbers[i])) == CFD_LEDGER_TABLE;
	}
	return ledger ? found : NULL;
}

/* The first of these columns that a constraint refers to, if only by the whole row. */
static const char *
checks_referred(Oid table, HeapTuple constraint, TupleDesc desc, const Bitmapset *columns)
{
	bool		none;
	Datum		value = heap_getattr(constraint, Anum_pg_constraint_conkey, desc, &none);
	ArrayType  *keys = none ? NULL : DatumGetArrayTypeP(value);

	for (int i = 0; keys != NULL && i < ARR_DIMS(keys)[0]; i++)
	{
		AttrNumber	key = ((AttrNumber *) ARR_DATA_PTR(keys))[i];

		if (key == InvalidAttrNumber || bms_is_member(key, columns))
			return get_attname(table, key == InvalidAttrNumber ? bms_next_member(columns, -1) : key, false);
	}
	return NULL;
}

static void
checks_constraint(Oid table, HeapTuple constraint, TupleDesc desc, const Bitmapset *columns)
{
	Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(constraint);
	const char *column = form->contype == CONSTRAINT_CHECK ? checks_referred(table, constraint, desc, columns) : NULL;

	if (column != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("check constraint \"%s\" of ledger table \"%s\" refers to column \"%s\"",
						NameStr(form->conname), get_rel_name(table), column),
				 errdetail("Number, time and author of a row are set when it is written, after constraints were checked."),
				 errhint("A trigger AFTER INSERT OR UPDATE can check them.")));
}

static void
checks_table(Oid table, const Bitmapset *columns)
{
	Relation	constraints = table_open(ConstraintRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	constraint;

	ScanKeyInit(&key, Anum_pg_constraint_conrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(table));
	scan = systable_beginscan(constraints, ConstraintRelidTypidNameIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(constraint = systable_getnext(scan)))
		checks_constraint(table, constraint, RelationGetDescr(constraints), columns);
	systable_endscan(scan);
	table_close(constraints, AccessShareLock);
}

static bool
checks_added(const Node *statement)
{
	ListCell   *cell;

	if (IsA(statement, CreateStmt))
		return true;
	foreach(cell, ((const AlterTableStmt *) statement)->cmds)
	{
		if (lfirst_node(AlterTableCmd, cell)->subtype == AT_AddConstraint)
			return true;
	}
	return false;
}

void
cfd_ledger_refuse_checks(const Node *statement)
{
	const RangeVar *name;
	Oid			table;
	ListCell   *cell;

	if (!(IsA(statement, CreateStmt) || IsA(statement, AlterTableStmt)) || !checks_added(statement))
		return;
	name = IsA(statement, CreateStmt) ? ((const CreateStmt *) statement)->relation : ((const AlterTableStmt *) statement)->relation;
	CommandCounterIncrement();
	table = RangeVarGetRelid(name, NoLock, true);
	foreach(cell, OidIsValid(table) ? find_all_inheritors(table, NoLock, NULL) : NIL)
	{
		Bitmapset  *columns = checks_own_columns(lfirst_oid(cell));

		if (columns != NULL)
			checks_table(lfirst_oid(cell), columns);
	}
}
