/*
 * packed.c
 *	  Refuses protected values inside a text, JSON or XML value, in every
 *	  query and stored expression. The result would contain an envelope of
 *	  this session, which nobody can open once the session has ended: an
 *	  audit row made with to_jsonb(NEW) would silently be lost.
 *
 * The check looks at the types of arguments, including whole rows. It also
 * covers functions and triggers, whose expressions are analysed when they run.
 * Values without such types are refused when their text is made
 * (value/shown.c).
 *
 * Invariant: nothing is changed; an expression without protected types passes.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "cell/cell.h"
#include "compat/compat.h"
#include "funcapi.h"
#include "hooks/hooks.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "session/channel.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

/* A protected value in the result of an expression. */
typedef struct Part
{
	Oid			type;
	const char *column;			/* NULL: not a named column */
} Part;

static void
refuse_packed(const Part *part)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 part->column != NULL ?
			 errmsg("protected column \"%s\" of type %s cannot be put into a text, JSON or XML value",
					part->column, format_type_be(part->type)) :
			 errmsg("a protected value of type %s cannot be put into a text, JSON or XML value",
					format_type_be(part->type)),
			 errdetail("It would be there as an envelope of this session, which nobody can open later."),
			 errhint("Put the plain columns into it, and keep protected ones in columns of protected types.")));
}

static bool
in_descriptor(TupleDesc desc, Part *part)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (attribute->attisdropped || !cfd_family_contains(attribute->atttypid))
			continue;
		part->type = attribute->atttypid;
		part->column = pstrdup(NameStr(attribute->attname));
		return true;
	}
	return false;
}

static bool
in_row_type(Oid type, int32 typmod, Part *part)
{
	TupleDesc	desc = lookup_rowtype_tupdesc_noerror(type, typmod, true);
	bool		found;

	if (desc == NULL)
		return false;
	found = in_descriptor(desc, part);
	ReleaseTupleDesc(desc);
	return found;
}

static RangeTblEntry *
entry_of(const Var *var, List *queries)
{
	Query	   *query;

	if ((int) var->varlevelsup >= list_length(queries))
		return NULL;
	query = list_nth_node(Query, queries, var->varlevelsup);
	return var->varno >= 1 && var->varno <= list_length(query->rtable) ? rt_fetch(var->varno, query->rtable) : NULL;
}

/* Looks for protected columns in a FROM item that has no composite type. */
static bool
in_entry(RangeTblEntry *entry, Part *part)
{
	List	   *names;
	List	   *vars;
	ListCell   *name;
	ListCell   *var;

	CFD_EXPAND_ENTRY(entry, &names, &vars);
	forboth(name, names, var, vars)
	{
		if (!cfd_family_contains(exprType(lfirst(var))))
			continue;
		part->type = exprType(lfirst(var));
		part->column = strVal(lfirst(name));
		return true;
	}
	return false;
}

static bool in_value(Node *value, List *queries, Part *part);

static bool
in_record(Node *value, List *queries, Part *part)
{
	ListCell   *cell;

	if (IsA(value, RowExpr))
	{
		foreach(cell, ((RowExpr *) value)->args)
		{
			if (in_value(lfirst(cell), queries, part))
				return true;
		}
		return false;
	}
	if (IsA(value, Var) && ((Var *) value)->varattno == InvalidAttrNumber)
	{
		RangeTblEntry *entry = entry_of((Var *) value, queries);

		return entry != NULL && in_entry(entry, part);
	}
	if (IsA(value, FuncExpr))
	{
		TupleDesc	desc = get_expr_result_tupdesc(value, true);

		return desc != NULL && in_descriptor(desc, part);
	}
	return exprTypmod(value) >= 0 && in_row_type(RECORDOID, exprTypmod(value), part);
}

/* Whether the value is protected, or contains a protected value. */
static bool
in_value(Node *value, List *queries, Part *part)
{
	Oid			type = exprType(value);

	if (IsA(value, RelabelType))
		return in_value((Node *) ((RelabelType *) value)->arg, queries, part);
	if (type == RECORDOID)
		return in_record(value, queries, part);
	if (!cfd_family_contains(type))
		return false;
	part->type = type;
	part->column = NULL;
	if (type_is_rowtype(type))
		(void) in_row_type(getBaseType(type), -1, part);
	else if (IsA(value, Var))
	{
		RangeTblEntry *entry = entry_of((Var *) value, queries);

		if (entry != NULL && ((Var *) value)->varattno > 0)
			part->column = get_rte_attribute_name(entry, ((Var *) value)->varattno);
	}
	return true;
}

/* What a function or aggregate does with its arguments. */
typedef enum Packing
{
	PACKS_NOTHING,
	PACKS_TEXT,					/* converts them to text, like a cast */
	PACKS_PARTS					/* puts them into a text or JSON value */
} Packing;

static Packing
packing_of(Oid function)
{
	switch (function)
	{
		case F_ANYTEXTCAT:
		case F_TEXTANYCAT:
		case F_CONCAT:
		case F_CONCAT_WS:
		case F_FORMAT_TEXT_ANY:
		case F_QUOTE_LITERAL_ANYELEMENT:
		case F_QUOTE_NULLABLE_ANYELEMENT:
			return PACKS_TEXT;
		case F_ARRAY_TO_STRING_ANYARRAY_TEXT:
		case F_ARRAY_TO_STRING_ANYARRAY_TEXT_TEXT:
		case F_TO_JSON:
		case F_TO_JSONB:
		case F_ROW_TO_JSON_RECORD:
		case F_ROW_TO_JSON_RECORD_BOOL:
		case F_ARRAY_TO_JSON_ANYARRAY:
		case F_ARRAY_TO_JSON_ANYARRAY_BOOL:
		case F_JSON_BUILD_ARRAY_ANY:
		case F_JSON_BUILD_OBJECT_ANY:
		case F_JSONB_BUILD_ARRAY_ANY:
		case F_JSONB_BUILD_OBJECT_ANY:
		case F_JSON_AGG:
		case F_JSONB_AGG:
		case F_JSON_OBJECT_AGG:
		case F_JSONB_OBJECT_AGG:
			return PACKS_PARTS;
		default:
			return PACKS_NOTHING;
	}
}

static void
check_values(List *values, List *queries)
{
	ListCell   *cell;
	Part		part;

	foreach(cell, values)
	{
		Node	   *value = lfirst(cell);

		if (IsA(value, TargetEntry))
			value = (Node *) ((TargetEntry *) value)->expr;
		if (in_value(value, queries, &part))
			refuse_packed(&part);
	}
}

/*
 * Refuses an argument of type record in an SQL function. Its columns are known
 * only during a call, and value/shown.c cannot tell what JSON functions make
 * text for.
 */
static void
refuse_unknown(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("an argument of type record cannot be put into a JSON value"),
			 errdetail("It could hold protected values, which would be there as envelopes of this session."),
			 errhint("Give the argument the row type of a table.")));
}

static bool
is_unknown(Node *value)
{
	return IsA(value, Param) && exprType(value) == RECORDOID && exprTypmod(value) < 0;
}

/*
 * Checks the arguments of a function or aggregate. Converting a protected
 * value itself to text is reported as a cast.
 */
static void
check_call(Oid function, List *args, List *queries)
{
	Packing		packing = packing_of(function);
	ListCell   *cell;

	if (packing == PACKS_NOTHING)
		return;
	foreach(cell, args)
	{
		Oid			type = packing == PACKS_TEXT ? exprType(lfirst(cell)) : InvalidOid;

		if (cfd_family_code(type) != 0)
			cfd_refuse_cast(type, TEXTOID);
		if (packing == PACKS_PARTS && cfd_channel.had_client && is_unknown(lfirst(cell)))
			refuse_unknown();
	}
	check_values(args, queries);
}

/* Whether an output or send function is called explicitly. */
static bool
writes(const FuncExpr *call)
{
	return list_length(call->args) == 1 &&
		(call->funcresulttype == CSTRINGOID || call->funcresulttype == BYTEAOID);
}

void
cfd_check_packed(Node *node, List *queries)
{
	switch (nodeTag(node))
	{
		case T_CoerceViaIO:
			check_values(list_make1(((CoerceViaIO *) node)->arg), queries);
			break;
		case T_FuncExpr:
			check_call(((FuncExpr *) node)->funcid, ((FuncExpr *) node)->args, queries);
			if (writes((FuncExpr *) node))
				check_values(((FuncExpr *) node)->args, queries);
			break;
		case T_OpExpr:
			check_call(((OpExpr *) node)->opfuncid, ((OpExpr *) node)->args, queries);
			break;
		case T_Aggref:
			check_call(((Aggref *) node)->aggfnoid, ((Aggref *) node)->args, queries);
			break;
		case T_WindowFunc:
			check_call(((WindowFunc *) node)->winfnoid, ((WindowFunc *) node)->args, queries);
			break;
		case T_XmlExpr:
			check_values(((XmlExpr *) node)->named_args, queries);
			check_values(((XmlExpr *) node)->args, queries);
			break;
		default:
			break;
	}
}
