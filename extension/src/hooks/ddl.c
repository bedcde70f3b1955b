/*
 * ddl.c
 *	  Processing before a utility statement runs.
 *
 * A new table with protected columns gets the access method "confide" by
 * default; a plain table that gets such a column is moved to it first;
 * constants in the definition of a materialized view become permanent. Refuses
 * only ALTER COLUMN ... TYPE with computed values; hooks/family.c refuses types
 * that values cannot be changed to, hooks/refusals.c everything else.
 *
 * Invariant: the original statement is not modified; a changed statement is a
 * copy.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "cell/cell.h"
#include "session/channel.h"
#include "commands/prepare.h"
#include "hooks/hooks.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parse_type.h"
#include "tcop/dest.h"
#include "tcop/utility.h"
#include "value/promote.h"
#include "value/types.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#define METHOD "confide"

/* The type that a column definition names. InvalidOid if there is none. */
static Oid
named_type(TypeName *name)
{
	TypeName	bare;
	Type		type;
	Oid			result;

	if (name == NULL || name->setof)
		return InvalidOid;
	/* Leave it to PostgreSQL to report an invalid modifier, with its location. */
	bare = *name;
	bare.typmods = NIL;
	type = LookupTypeName(NULL, &bare, NULL, true);
	if (type == NULL)
		return InvalidOid;
	result = ((Form_pg_type) GETSTRUCT(type))->typisdefined ? typeTypeId(type) : InvalidOid;
	ReleaseSysCache(type);
	return result;
}

static bool
names_protected_type(TypeName *name)
{
	Oid			type = named_type(name);

	return OidIsValid(type) && cfd_stored_code(type) != 0;
}

static bool
names_ledger_type(TypeName *name)
{
	Oid			type = named_type(name);

	return OidIsValid(type) && cfd_ledger_role(type) != CFD_NO_LEDGER;
}

static bool
has_ledger(TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
	{
		if (cfd_ledger_role(TupleDescAttr(desc, i)->atttypid) != CFD_NO_LEDGER)
			return true;
	}
	return false;
}

static bool
relation_has_protected(RangeVar *name)
{
	Relation	relation = relation_openrv_extended(name, AccessShareLock, true);
	bool		result;

	if (relation == NULL)
		return false;
	result = cfd_has_protected(RelationGetDescr(relation)) || has_ledger(RelationGetDescr(relation));
	/* Keep the lock until the end of the transaction, as PostgreSQL does. */
	relation_close(relation, NoLock);
	return result;
}

static bool
composite_has_protected(TypeName *name)
{
	Type		type = LookupTypeName(NULL, name, NULL, true);
	Oid			relid;
	Relation	relation;
	bool		result;

	if (type == NULL)
		return false;
	relid = typeTypeRelid(type);
	ReleaseSysCache(type);
	if (!OidIsValid(relid))
		return false;
	relation = relation_open(relid, AccessShareLock);
	result = cfd_has_protected(RelationGetDescr(relation));
	relation_close(relation, AccessShareLock);
	return result;
}

/* Whether a CREATE TABLE describes a table with protected columns or a ledger table. */
static bool
will_have_protected(const CreateStmt *create)
{
	ListCell   *cell;

	foreach(cell, create->tableElts)
	{
		Node	   *element = lfirst(cell);

		if (IsA(element, ColumnDef) && (names_protected_type(((ColumnDef *) element)->typeName) ||
										names_ledger_type(((ColumnDef *) element)->typeName)))
			return true;
		if (IsA(element, TableLikeClause) && relation_has_protected(((TableLikeClause *) element)->relation))
			return true;
	}
	foreach(cell, create->inhRelations)
	{
		if (relation_has_protected(lfirst_node(RangeVar, cell)))
			return true;
	}
	return create->ofTypename != NULL && composite_has_protected(create->ofTypename);
}

static bool
result_has_protected(const CreateTableAsStmt *create)
{
	Query	   *query = (Query *) create->query;
	ListCell   *cell;

	if (query == NULL || !IsA(query, Query))
		return false;
	if (query->commandType == CMD_UTILITY && IsA(query->utilityStmt, ExecuteStmt))
	{
		PreparedStatement *prepared =
		FetchPreparedStatement(((ExecuteStmt *) query->utilityStmt)->name, false);

		return prepared != NULL && prepared->plansource->resultDesc != NULL &&
			cfd_has_protected(prepared->plansource->resultDesc);
	}
	foreach(cell, query->targetList)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);

		if (!entry->resjunk && cfd_stored_code(exprType((Node *) entry->expr)) != 0)
			return true;
	}
	return false;
}

/* Replaces constants that have temporary FIDs by permanent ones, in place. */
static bool
make_permanent(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, make_permanent, context, 0);
	if (IsA(node, Const))
	{
		Const	   *constant = (Const *) node;
		uint8		type = cfd_type_code(constant->consttype);

		if (type != 0 && !constant->constisnull &&
			cfd_fid_is_temporary(DatumGetUInt64(constant->constvalue)))
			constant->constvalue =
				UInt64GetDatum(cfd_make_constant(DatumGetUInt64(constant->constvalue), type));
		return false;
	}
	return expression_tree_walker(node, make_permanent, context);
}

static void
adapt_create_as(CreateTableAsStmt *create)
{
	if (create->into->accessMethod == NULL && result_has_protected(create))
		create->into->accessMethod = pstrdup(METHOD);
	if (create->objtype == OBJECT_MATVIEW)
	{
		(void) make_permanent((Node *) create->into->viewQuery, NULL);
		(void) make_permanent(create->query, NULL);
	}
}

static bool
concerns(const Node *statement)
{
	if (IsA(statement, CreateStmt))
	{
		const CreateStmt *create = (const CreateStmt *) statement;

		return cfd_ledger_asked(create) ||
			(create->accessMethod == NULL && create->partspec == NULL && will_have_protected(create));
	}
	if (IsA(statement, CreateTableAsStmt))
	{
		const CreateTableAsStmt *create = (const CreateTableAsStmt *) statement;

		return create->objtype == OBJECT_MATVIEW || result_has_protected(create);
	}
	if (IsA(statement, ExplainStmt))
	{
		const Query *query = (const Query *) ((const ExplainStmt *) statement)->query;

		return query != NULL && IsA(query, Query) && query->commandType == CMD_UTILITY &&
			IsA(query->utilityStmt, CreateTableAsStmt) && concerns(query->utilityStmt);
	}
	return false;
}

static void
adapt(Node *statement)
{
	if (IsA(statement, CreateStmt))
	{
		CreateStmt *create = (CreateStmt *) statement;

		if (cfd_ledger_asked(create))
			cfd_ledger_adapt(create);
		if (create->accessMethod == NULL && create->partspec == NULL && will_have_protected(create))
			create->accessMethod = pstrdup(METHOD);
	}
	else if (IsA(statement, CreateTableAsStmt))
		adapt_create_as((CreateTableAsStmt *) statement);
	else if (IsA(statement, ExplainStmt))
		adapt(((Query *) ((ExplainStmt *) statement)->query)->utilityStmt);
}

/*
 * Whether a column's new values come from an expression other than the column
 * itself.
 */
static bool
computes_column(const AlterTableCmd *command)
{
	const ColumnDef *column = (const ColumnDef *) command->def;
	const ColumnRef *name;

	if (command->subtype != AT_AlterColumnType || column->raw_default == NULL)
		return false;
	name = (const ColumnRef *) column->raw_default;
	return !IsA(name, ColumnRef) || list_length(name->fields) != 1 ||
		!IsA(linitial(name->fields), String) ||
		strcmp(strVal(linitial(name->fields)), command->name) != 0;
}

/*
 * In a table rewrite, rows keep their FIDs (tableam/moved.c). Only a client
 * may use an expression that takes values from elsewhere.
 */
static void
refuse_computed(const AlterTableStmt *alter)
{
	ListCell   *cell;

	if (cfd_channel.had_client)
		return;
	foreach(cell, alter->cmds)
	{
		const AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (computes_column(command) && names_protected_type(castNode(ColumnDef, command->def)->typeName))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("confide: no client session"),
					 errdetail("Without one the values of protected column \"%s\" stay in their rows.",
							   command->name),
					 errhint("Connect through the Confide proxy.")));
	}
}

/* Whether an ALTER TABLE adds a protected column to a table without one. */
static bool
gets_protected(const AlterTableStmt *alter)
{
	ListCell   *cell;

	foreach(cell, alter->cmds)
	{
		const AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if ((command->subtype == AT_AddColumn || command->subtype == AT_AlterColumnType) &&
			names_protected_type(castNode(ColumnDef, command->def)->typeName))
			return true;
	}
	return false;
}

/* Whether it is an ordinary heap table without children. */
static bool
is_plain_table(RangeVar *name)
{
	Oid			oid = RangeVarGetRelid(name, NoLock, true);
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(oid));
	Form_pg_class form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_class) GETSTRUCT(tuple);
	result = form->relkind == RELKIND_RELATION && form->relam == HEAP_TABLE_AM_OID &&
		!form->relispartition && !has_subclass(oid);
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Moves a plain table to our access method first. PostgreSQL checks ownership
 * and locks the table. Everything that follows fails or succeeds with it.
 */
static void
move_to_method(const AlterTableStmt *alter)
{
	AlterTableCmd *command = makeNode(AlterTableCmd);
	AlterTableStmt *move = makeNode(AlterTableStmt);
	PlannedStmt *wrapper = makeNode(PlannedStmt);

	command->subtype = AT_SetAccessMethod;
	command->name = pstrdup(METHOD);
	move->relation = copyObject(alter->relation);
	move->cmds = list_make1(command);
	move->objtype = OBJECT_TABLE;
	wrapper->commandType = CMD_UTILITY;
	wrapper->utilityStmt = (Node *) move;
	wrapper->stmt_location = -1;
	ProcessUtility(wrapper, "ALTER TABLE ... SET ACCESS METHOD", false, PROCESS_UTILITY_SUBCOMMAND, NULL, NULL,
				   None_Receiver, NULL);
	CommandCounterIncrement();
}

static void
prepare_alter(const AlterTableStmt *alter)
{
	cfd_family_check(alter);
	refuse_computed(alter);
	if (alter->objtype == OBJECT_TABLE && OidIsValid(cfd_access_method()) &&
		gets_protected(alter) && is_plain_table(alter->relation))
		move_to_method(alter);
}

PlannedStmt *
cfd_adapt_ddl(PlannedStmt *statement)
{
	PlannedStmt *copy;

	if (statement->utilityStmt == NULL)
		return statement;
	switch (nodeTag(statement->utilityStmt))
	{
		case T_CreateStmt:
		case T_CreateTableAsStmt:
		case T_ExplainStmt:
			break;
		case T_AlterTableStmt:
			prepare_alter((const AlterTableStmt *) statement->utilityStmt);
			return statement;
		default:
			return statement;
	}
	if (!OidIsValid(cfd_access_method()) || !concerns(statement->utilityStmt))
		return statement;
	copy = copyObject(statement);
	adapt(copy->utilityStmt);
	return copy;
}
