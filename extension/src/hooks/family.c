/*
 * family.c
 *	  ALTER COLUMN ... TYPE from a protected type to one of another family, or
 *	  to a plain one.
 *
 * The server converts values by itself between enc_ and rnd_ only, where casts
 * let the keeper do it. All other values must pass a client. The proxy reads
 * them, puts the new values beside the rows' places, and alters the column
 * USING a function of the place (crates/proxy/src/session/recode.rs).
 *
 * Invariant: no envelope, cell or encoding becomes the value of a column that
 * is not of its family. PostgreSQL alone would convert each of them to text.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "cell/cell.h"
#include "compat/compat.h"
#include "hooks/hooks.h"
#include "nodes/parsenodes.h"
#include "parser/parse_func.h"
#include "parser/parse_type.h"
#include "soft/soft.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "value/types.h"

typedef enum Family
{
	PLAIN,
	KEPT,						/* enc_, rnd_ */
	ENCODED						/* soft_ */
} Family;

static Family
family_of(Oid type)
{
	Oid			base = getBaseType(type);

	if (cfd_type_code(base) != 0 || cfd_cell_code(base) != 0)
		return KEPT;
	return cfd_soft_code(base) != 0 ? ENCODED : PLAIN;
}

/*
 * Whether the new values are those of a function of the row's place, which
 * returns the new type's family: nothing of the old values is in them.
 */
static bool
from_place(const Node *expression, Family family)
{
	const FuncCall *call = (const FuncCall *) expression;
	const ColumnRef *place;
	Oid			argument = TIDOID;
	Oid			function;

	if (expression == NULL || !IsA(expression, FuncCall) || list_length(call->args) != 1)
		return false;
	place = linitial(call->args);
	if (!IsA(place, ColumnRef) || list_length(place->fields) != 1 ||
		!IsA(linitial(place->fields), String) || strcmp(strVal(linitial(place->fields)), "ctid") != 0)
		return false;
	function = LookupFuncName(call->funcname, 1, &argument, true);
	return OidIsValid(function) && family_of(get_func_rettype(function)) == family;
}

pg_noreturn static void refuse_change(const char *column, Family from, Family to);

static void
refuse_change(const char *column, Family from, Family to)
{
	if (to == PLAIN)
		ereport(ERROR,
				(errcode(ERRCODE_CANNOT_COERCE),
				 errmsg("protected column \"%s\" cannot become plain", column),
				 errdetail("There is no cast from a protected type to a plain one."),
				 errhint("Alter this column through Confide's proxy, in a statement of its own.")));
	ereport(ERROR,
			(errcode(ERRCODE_CANNOT_COERCE),
			 errmsg("protected column \"%s\" cannot change to this family", column),
			 errdetail("The server cannot convert between encodings and other protected values."),
			 errhint("Alter this column through Confide's proxy, in a statement of its own.")));
}

/* To be called before ALTER TABLE. */
void
cfd_family_check(const AlterTableStmt *alter)
{
	ListCell   *cell;

	foreach(cell, alter->cmds)
	{
		const AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);
		const ColumnDef *column = (const ColumnDef *) command->def;
		Oid			relation;
		AttrNumber	number;
		Family		from;
		Family		to;
		Type		type;

		if (command->subtype != AT_AlterColumnType)
			continue;
		relation = RangeVarGetRelid(alter->relation, AccessShareLock, true);
		number = OidIsValid(relation) ? get_attnum(relation, command->name) : InvalidAttrNumber;
		from = number == InvalidAttrNumber ? PLAIN : family_of(get_atttype(relation, number));
		if (from == PLAIN)
			continue;
		/* PostgreSQL reports a type that does not exist. */
		type = LookupTypeName(NULL, column->typeName, NULL, true);
		if (type == NULL)
			continue;
		to = family_of(typeTypeId(type));
		ReleaseSysCache(type);
		if (from != to && !from_place(column->raw_default, to))
			refuse_change(command->name, from, to);
	}
}
