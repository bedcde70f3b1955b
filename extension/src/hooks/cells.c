/*
 * cells.c
 *	  DDL on columns of the family rnd_. They get their numbers
 *	  (cell/columns.c) before an ALTER TABLE, which may compute values for
 *	  them, and after a CREATE TABLE. Refuses them where cells cannot be
 *	  stored.
 *
 * A column rnd_...(det) gets the type rnd_det_..., before PostgreSQL sees it.
 *
 * A partition or child table has its parent's columns with the parent's
 * numbers, since PostgreSQL requires equal type modifiers.
 *
 * Invariant: after a successful DDL statement, each column of the family has a
 * number that belongs to its relation or to one that it inherits from; the
 * original statement is not modified, a changed statement is a copy.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "cell/cell.h"
#include "hooks/hooks.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "value/types.h"

/*
 * If a definition names a type of the family, returns its code and sets
 * *modifier to its plain modifier; otherwise returns 0.
 */
static uint8
named_code(TypeName *name, int32 *modifier)
{
	Type		type;
	uint8		code;

	if (name == NULL || name->arrayBounds != NIL || name->setof)
		return 0;
	type = LookupTypeName(NULL, name, NULL, true);
	if (type == NULL)
		return 0;
	code = cfd_cell_code(typeTypeId(type));
	ReleaseSysCache(type);
	if (code != 0)
	{
		Oid			oid;

		typenameTypeIdAndMod(NULL, name, &oid, modifier);
	}
	return code;
}

/* The column definition of the family in an ALTER TABLE command, or NULL. */
static ColumnDef *
defined_column(const AlterTableCmd *command, int32 *modifier)
{
	ColumnDef  *column = (ColumnDef *) command->def;

	if (command->subtype != AT_AddColumn && command->subtype != AT_AlterColumnType)
		return NULL;
	return named_code(column->typeName, modifier) != 0 ? column : NULL;
}

static PlannedStmt *
number_altered(PlannedStmt *statement)
{
	AlterTableStmt *alter = castNode(AlterTableStmt, statement->utilityStmt);
	Oid			relation = RangeVarGetRelid(alter->relation, NoLock, true);
	bool		concerned = false;
	ListCell   *cell;
	int32		modifier;

	if (!OidIsValid(relation) || alter->objtype == OBJECT_TYPE)
		return statement;
	foreach(cell, alter->cmds)
		concerned = concerned || defined_column(lfirst_node(AlterTableCmd, cell), &modifier) != NULL;
	if (!concerned)
		return statement;
	statement = copyObject(statement);
	alter = castNode(AlterTableStmt, statement->utilityStmt);
	foreach(cell, alter->cmds)
	{
		ColumnDef  *column = defined_column(lfirst_node(AlterTableCmd, cell), &modifier);
		int32		typmod;
		A_Const    *text = makeNode(A_Const);

		if (column == NULL)
			continue;
		typmod = cfd_cell_new_number(relation, modifier);
		text->val.sval = *makeString(psprintf("#%d", typmod & ~CFD_CELL_NUMBERED));
		text->location = -1;
		column->typeName->typmods = list_make1(text);
	}
	return statement;
}

/* ---------- det ---------- */

static bool
says_det(const Node *modifier)
{
	const ColumnRef *word = (const ColumnRef *) modifier;

	return IsA(modifier, ColumnRef) && list_length(word->fields) == 1 && IsA(linitial(word->fields), String) &&
		strcmp(strVal(linitial(word->fields)), "det") == 0;
}

/* Whether a column's type is rnd_...(..., det). If `change`, gives it the type rnd_det_.... */
static bool
make_det(ColumnDef *column, bool change)
{
	TypeName   *name = column != NULL && IsA(column, ColumnDef) ? column->typeName : NULL;
	ListCell   *cell;
	List	   *others = NIL;
	bool		found = false;
	TypeName	bare;
	Type		type;
	uint8		code;

	foreach(cell, name != NULL ? name->typmods : NIL)
	{
		if (says_det(lfirst(cell)))
			found = true;
		else
			others = lappend(others, lfirst(cell));
	}
	if (!found)
		return false;
	/* The type itself knows no such modifier. */
	bare = *name;
	bare.typmods = NIL;
	type = LookupTypeName(NULL, &bare, NULL, true);
	if (type == NULL)
		return false;
	code = cfd_cell_code(typeTypeId(type));
	ReleaseSysCache(type);
	if (code != 0 && change)
	{
		name->names = list_make2(makeString("pg_catalog"), makeString(psprintf("rnd_det_%s", cfd_plain_name(code))));
		name->typmods = others;
	}
	return code != 0;
}

static bool
make_all_det(Node *statement, bool change)
{
	bool		found = false;
	ListCell   *cell;

	if (IsA(statement, CreateStmt))
	{
		foreach(cell, ((CreateStmt *) statement)->tableElts)
			found = make_det(lfirst(cell), change) || found;
		return found;
	}
	foreach(cell, ((AlterTableStmt *) statement)->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (command->subtype == AT_AddColumn || command->subtype == AT_AlterColumnType)
			found = make_det((ColumnDef *) command->def, change) || found;
	}
	return found;
}

PlannedStmt *
cfd_cells_adapt(PlannedStmt *statement)
{
	Node	   *utility = statement->utilityStmt;

	if (utility == NULL || !(IsA(utility, AlterTableStmt) || IsA(utility, CreateStmt)) ||
		!OidIsValid(cfd_access_method()))
		return statement;
	if (make_all_det(utility, false))
	{
		statement = copyObject(statement);
		make_all_det(statement->utilityStmt, true);
	}
	return IsA(utility, AlterTableStmt) ? number_altered(statement) : statement;
}

/* ---------- after the statement ---------- */

static void
set_modifier(Oid relation, AttrNumber number, int32 typmod)
{
	Relation	attributes = table_open(AttributeRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy2(ATTNUM, ObjectIdGetDatum(relation), Int16GetDatum(number));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for attribute %d of relation %u", number, relation);
	((Form_pg_attribute) GETSTRUCT(tuple))->atttypmod = typmod;
	CatalogTupleUpdate(attributes, &tuple->t_self, tuple);
	heap_freetuple(tuple);
	table_close(attributes, RowExclusiveLock);
	CommandCounterIncrement();
}

static void
refuse_place(const char *relation, const FormData_pg_attribute *attribute, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("column \"%s\" of \"%s\" cannot have type %s", NameStr(attribute->attname), relation,
					format_type_be(attribute->atttypid)),
			 errdetail("%s", detail),
			 errhint("%s", hint)));
}

static void
check_column(const Node *statement, const char *relation, const FormData_pg_attribute *attribute)
{
	if (cfd_cell_code(attribute->atttypid) == 0)
		refuse_place(relation, attribute,
					 "Protected values cannot be stored inside arrays, composites, ranges and domains.",
					 "Give each protected value a column of its own.");
	if (IsA(statement, CreateTableAsStmt))
		refuse_place(relation, attribute, "A cell is sealed for its column, which is not there yet.",
					 "Create the table first, then INSERT ... SELECT; or cast to the type enc_....");
	if (IsA(statement, CreateForeignTableStmt))
		refuse_place(relation, attribute, "Cells are not stored in foreign tables.", "Use a table.");
}

/* Assigns numbers to the columns of a new table. */
static void
number_created(const Node *statement, const RangeVar *name)
{
	Oid			oid = RangeVarGetRelid(name, NoLock, true);
	int			natts = OidIsValid(oid) ? cfd_cell_natts(oid) : 0;

	for (int number = 1; number <= natts; number++)
	{
		HeapTuple	tuple = SearchSysCacheCopy2(ATTNUM, ObjectIdGetDatum(oid), Int16GetDatum(number));
		Form_pg_attribute form;
		int32		modifier;
		bool		numbered;

		if (!HeapTupleIsValid(tuple))
			continue;
		form = (Form_pg_attribute) GETSTRUCT(tuple);
		if (form->attisdropped || !cfd_cell_contains(form->atttypid))
			continue;
		check_column(statement, name->relname, form);
		modifier = form->atttypmod;
		/* LIKE copies the number of the other table's column. */
		numbered = cfd_cell_numbered(modifier) && cfd_cell_relation(modifier, &modifier) == oid;
		if (!numbered && form->attinhcount == 0)
			set_modifier(oid, number, cfd_cell_new_number(oid, modifier));
		heap_freetuple(tuple);
	}
}

/*
 * Refuses the family inside arrays and the like. The columns that ALTER TABLE
 * defined already have numbers.
 */
static void
check_altered(const AlterTableStmt *alter)
{
	Oid			oid = RangeVarGetRelid(alter->relation, NoLock, true);
	Relation	relation;
	TupleDesc	desc;

	if (!OidIsValid(oid))
		return;
	relation = relation_open(oid, NoLock);
	desc = RelationGetDescr(relation);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (attribute->attisdropped || !cfd_cell_contains(attribute->atttypid))
			continue;
		if (relation->rd_rel->relkind == RELKIND_RELATION || relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
			check_column((const Node *) alter, RelationGetRelationName(relation), attribute);
	}
	relation_close(relation, NoLock);
}

bool
cfd_cells_build_indexes(const Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_AlterTableStmt:
		case T_ClusterStmt:
		case T_IndexStmt:
		case T_ReindexStmt:
			return true;
		default:
			return false;
	}
}

void
cfd_cells_after(const Node *statement)
{
	if (!OidIsValid(cfd_access_method()))
		return;
	switch (nodeTag(statement))
	{
		case T_CreateStmt:
			number_created(statement, ((const CreateStmt *) statement)->relation);
			break;
		case T_CreateForeignTableStmt:
			number_created(statement, ((const CreateForeignTableStmt *) statement)->base.relation);
			break;
		case T_CreateTableAsStmt:
			number_created(statement, ((const CreateTableAsStmt *) statement)->into->rel);
			break;
		case T_AlterTableStmt:
			if (((const AlterTableStmt *) statement)->objtype == OBJECT_TABLE)
				check_altered((const AlterTableStmt *) statement);
			break;
		default:
			break;
	}
}
