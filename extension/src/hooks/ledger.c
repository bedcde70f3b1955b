/*
 * ledger.c
 *	  Utility statements on ledger tables (docs/ledger.md). CREATE TABLE
 *	  ... WITH (confide.ledger = on) creates one together with its history.
 *	  Statements that would change or remove stored versions are refused.
 *
 * A superuser can get around this, in the catalogs if need be. In that case
 * the log gives evidence of it.
 *
 * Invariant: the original statement is not modified; a changed statement is a
 * copy.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/dependency.h"
#include "catalog/heap.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "executor/spi.h"
#include "hooks/hooks.h"
#include "ledger/ledger.h"
#include "parser/parser.h"
#include "session/channel.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*
 * The additional columns of a ledger table. The results of their expressions
 * are never seen.
 */
#define COLUMNS \
	"CREATE TABLE x (sn pg_catalog.ledger_sn GENERATED ALWAYS AS (0) STORED," \
	" valid_from pg_catalog.timestamptz GENERATED ALWAYS AS ('-infinity'::pg_catalog.timestamptz) STORED," \
	" by pg_catalog.text GENERATED ALWAYS AS (''::pg_catalog.text) STORED)"

static DefElem *
option_of(const CreateStmt *create)
{
	ListCell   *cell;

	foreach(cell, create->options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);

		if (option->defnamespace != NULL && strcmp(option->defnamespace, "confide") == 0)
			return option;
	}
	return NULL;
}

bool
cfd_ledger_asked(const CreateStmt *create)
{
	return option_of(create) != NULL;
}

/* Removes our option from the statement and adds the columns. */
void
cfd_ledger_adapt(CreateStmt *create)
{
	DefElem    *option = option_of(create);
	RawStmt    *parsed;

	if (strcmp(option->defname, "ledger") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unrecognized parameter \"confide.%s\"", option->defname)));
	create->options = list_delete_ptr(create->options, option);
	if (!defGetBoolean(option))
		return;
	if (strlen(create->relation->relname) + strlen(CFD_LEDGER_HISTORY_SUFFIX) >= NAMEDATALEN)
		ereport(ERROR,
				(errcode(ERRCODE_NAME_TOO_LONG),
				 errmsg("the name of ledger table \"%s\" is too long", create->relation->relname),
				 errdetail("There must be room for \"" CFD_LEDGER_HISTORY_SUFFIX "\" behind it.")));
	parsed = linitial_node(RawStmt, raw_parser(COLUMNS, RAW_PARSE_DEFAULT));
	create->tableElts = list_concat(create->tableElts, castNode(CreateStmt, parsed->stmt)->tableElts);
}

/*
 * Whether a table has a column of a ledger type. Takes no lock: a lock that
 * PostgreSQL does not take at this point could lead to a deadlock with those
 * it takes later.
 */
static bool
has_ledger_column(Oid oid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(oid));
	int			count;

	if (!HeapTupleIsValid(tuple))
		return false;
	count = ((Form_pg_class) GETSTRUCT(tuple))->relnatts;
	ReleaseSysCache(tuple);
	for (AttrNumber number = 1; number <= count; number++)
	{
		if (cfd_ledger_role(get_atttype(oid, number)) != CFD_NO_LEDGER)
			return true;
	}
	return false;
}

static CfdLedgerRole
role_of(Oid oid)
{
	Relation	relation;
	CfdLedgerRole role;

	if (!OidIsValid(oid) || get_rel_relkind(oid) != RELKIND_RELATION || !has_ledger_column(oid))
		return CFD_NO_LEDGER;
	relation = try_relation_open(oid, AccessShareLock);
	if (relation == NULL)
		return CFD_NO_LEDGER;
	role = cfd_columns(relation)->ledger.role;
	relation_close(relation, AccessShareLock);
	return role;
}

static CfdLedgerRole
role_named(const RangeVar *name)
{
	return name == NULL ? CFD_NO_LEDGER : role_of(RangeVarGetRelid(name, NoLock, true));
}

static void
refuse(const char *what, const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot %s ledger table \"%s\" or its history", what, name),
			 errdetail("Versions of rows that are written stay as they are.")));
}

static void
check_alter(const AlterTableStmt *alter)
{
	ListCell   *cell;

	if (role_named(alter->relation) == CFD_NO_LEDGER || cfd_ledger_moving)
		return;
	foreach(cell, alter->cmds)
	{
		const AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		switch (command->subtype)
		{
			case AT_DropColumn:
			case AT_AlterColumnType:
			case AT_SetAccessMethod:
			case AT_SetUnLogged:
			case AT_DropExpression:
				refuse("make this change to", alter->relation->relname);
				break;
			case AT_AddColumn:
				if (castNode(ColumnDef, command->def)->raw_default != NULL ||
					castNode(ColumnDef, command->def)->constraints != NIL)
					refuse("add a column with a default or a constraint to", alter->relation->relname);
				break;
			default:
				break;
		}
	}
}

static void
check_drop(const DropStmt *drop)
{
	ListCell   *cell;

	if (drop->removeType != OBJECT_TABLE || cfd_channel.had_client)
		return;
	foreach(cell, drop->objects)
	{
		RangeVar   *name = makeRangeVarFromNameList(lfirst_node(List, cell));

		if (role_named(name) != CFD_NO_LEDGER)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("confide: no client session"),
					 errdetail("Ledger table \"%s\" is dropped by a client.", name->relname),
					 errhint("Connect through the Confide proxy.")));
	}
}

/*
 * The tables that TRUNCATE empties: partitions and children and, with CASCADE,
 * referencing tables.
 */
static List *
truncated(const TruncateStmt *truncate)
{
	List	   *all = NIL;
	ListCell   *cell;
	List	   *more;

	foreach(cell, truncate->relations)
	{
		const RangeVar *name = lfirst_node(RangeVar, cell);
		Oid			oid = RangeVarGetRelid(name, NoLock, true);

		if (OidIsValid(oid))
			all = list_concat_unique_oid(all, name->inh ? find_all_inheritors(oid, NoLock, NULL) : list_make1_oid(oid));
	}
	if (truncate->behavior != DROP_CASCADE)
		return all;
	for (more = heap_truncate_find_FKs(all); more != NIL; more = heap_truncate_find_FKs(all))
	{
		foreach(cell, more)
			all = list_concat_unique_oid(all, find_all_inheritors(lfirst_oid(cell), NoLock, NULL));
	}
	return all;
}

static void
check_truncate(const TruncateStmt *truncate)
{
	ListCell   *cell;

	foreach(cell, truncated(truncate))
	{
		if (role_of(lfirst_oid(cell)) != CFD_NO_LEDGER)
			refuse("truncate", get_rel_name(lfirst_oid(cell)));
	}
}

/* To be called before a utility statement runs. */
void
cfd_ledger_check_utility(const Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_AlterTableStmt:
			check_alter((const AlterTableStmt *) statement);
			break;
		case T_RenameStmt:
			if (role_named(((const RenameStmt *) statement)->relation) != CFD_NO_LEDGER)
				refuse("rename", ((const RenameStmt *) statement)->relation->relname);
			break;
		case T_AlterObjectSchemaStmt:
			if (role_named(((const AlterObjectSchemaStmt *) statement)->relation) != CFD_NO_LEDGER)
				refuse("move", ((const AlterObjectSchemaStmt *) statement)->relation->relname);
			break;
		case T_TruncateStmt:
			check_truncate((const TruncateStmt *) statement);
			break;
		case T_DropStmt:
			check_drop((const DropStmt *) statement);
			break;
		default:
			break;
	}
}

/* Makes an object be dropped together with its table. */
static void
depend(Oid table, const char *suffix)
{
	char	   *name = psprintf("%s%s", get_rel_name(table), suffix);
	ObjectAddress whole = {RelationRelationId, table, 0};
	ObjectAddress part = {RelationRelationId, get_relname_relid(name, get_rel_namespace(table)), 0};

	if (OidIsValid(part.objectId))
		recordDependencyOn(&part, &whole, DEPENDENCY_AUTO);
}

static bool
has_history(Oid table)
{
	char	   *name = psprintf("%s" CFD_LEDGER_HISTORY_SUFFIX, get_rel_name(table));

	return OidIsValid(get_relname_relid(name, get_rel_namespace(table)));
}

static void
complete(Oid table)
{
	Oid			types[1] = {REGCLASSOID};
	Datum		values[1] = {ObjectIdGetDatum(table)};

	SPI_connect();
	if (SPI_execute_with_args("SELECT confide.ledger_complete($1)", 1, types, values, NULL, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not make the history of a ledger table");
	SPI_finish();
}

/*
 * To be called after a utility statement has run. `asked` tells whether it
 * created a ledger table by our option.
 */
void
cfd_ledger_after_utility(const Node *statement, bool asked)
{
	ListCell   *cell;
	Oid			table;

	cfd_ledger_refuse_checks(statement);
	switch (nodeTag(statement))
	{
		case T_CreateStmt:
			/* A dump creates the history as a separate table. */
			if (!asked && ((const CreateStmt *) statement)->inhRelations == NIL)
				return;
			table = RangeVarGetRelid(((const CreateStmt *) statement)->relation, NoLock, true);
			if (role_of(table) != CFD_LEDGER_TABLE)
				return;
			CommandCounterIncrement();
			complete(table);
			depend(table, CFD_LEDGER_HISTORY_SUFFIX);
			depend(table, CFD_LEDGER_VIEW_SUFFIX);
			break;
		case T_AlterTableStmt:
			table = RangeVarGetRelid(((const AlterTableStmt *) statement)->relation, NoLock, true);
			/* In a dump the history is created later, as a separate table. */
			if (role_of(table) != CFD_LEDGER_TABLE || !has_history(table))
				return;
			CommandCounterIncrement();
			complete(table);
			break;
		case T_GrantStmt:
			if (((const GrantStmt *) statement)->objtype != OBJECT_TABLE ||
				((const GrantStmt *) statement)->targtype != ACL_TARGET_OBJECT)
				return;
			foreach(cell, ((const GrantStmt *) statement)->objects)
			{
				table = RangeVarGetRelid(lfirst_node(RangeVar, cell), NoLock, true);
				if (role_of(table) == CFD_LEDGER_TABLE)
				{
					CommandCounterIncrement();
					complete(table);
				}
			}
			break;
		default:
			break;
	}
}
