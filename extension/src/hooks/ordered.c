/*
 * ordered.c
 *	  Refuses an order that PostgreSQL would take from what is none: it knows
 *	  tokens, and encodings without order, by comparison functions of B-trees,
 *	  which are for unique indexes.
 *
 * ORDER BY, and operators, find no operator for such a type by themselves, or
 * are checked in soft.c. GREATEST and LEAST, and rows that are compared or
 * sorted as a whole, take the comparison function of the type.
 *
 * Invariant: no query is answered by the order of tokens.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "cell/cell.h"
#include "compat/compat.h"
#include "hooks/hooks.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "optimizer/optimizer.h"
#include "soft/soft.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

pg_noreturn static void ordered_refuse(Oid type);

static void
ordered_refuse(Oid type)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_FUNCTION),
			 errmsg("could not identify an ordering operator for type %s", format_type_be(type)),
			 errdetail("The order of its stored form is not that of its values."),
			 errhint("Cast the values of such columns to the types enc_..., each by itself.")));
}

static bool
unordered(Oid type)
{
	return cfd_cell_has_token(type) || cfd_soft_code(type) != 0;
}

/* Refuses a row with something that has no order. */
static void
ordered_check_row(Node *row)
{
	Oid			type = exprType(row);
	TupleDesc	columns;
	ListCell   *cell;

	if (IsA(row, RowExpr))
	{
		foreach(cell, ((RowExpr *) row)->args)
		{
			if (unordered(exprType(lfirst(cell))))
				ordered_refuse(exprType(lfirst(cell)));
		}
		return;
	}
	if (type == RECORDOID || !type_is_rowtype(type))
		return;
	columns = lookup_rowtype_tupdesc_domain(type, -1, true);
	if (columns == NULL)
		return;
	for (int at = 0; at < columns->natts; at++)
	{
		Oid			column = TupleDescAttr(columns, at)->atttypid;

		if (!TupleDescAttr(columns, at)->attisdropped && unordered(column))
		{
			ReleaseTupleDesc(columns);
			ordered_refuse(column);
		}
	}
	ReleaseTupleDesc(columns);
}

static void
check_sorted(const List *clauses, List *targets)
{
	ListCell   *cell;

	foreach(cell, clauses)
		ordered_check_row(get_sortgroupclause_expr(lfirst_node(SortGroupClause, cell), targets));
}

void
cfd_check_ordered_query(const Query *query)
{
	ListCell   *cell;

	check_sorted(query->sortClause, query->targetList);
	foreach(cell, query->windowClause)
		check_sorted(lfirst_node(WindowClause, cell)->orderClause, query->targetList);
}

/* Rows are compared by operators of PostgreSQL's own. */
static void
check_compared(const OpExpr *operation)
{
	char	   *name;
	ListCell   *cell;

	if (operation->opno >= FirstNormalObjectId || list_length(operation->args) != 2 ||
		!type_is_rowtype(exprType(linitial(operation->args))))
		return;
	name = get_opname(operation->opno);
	if (name == NULL || (name[0] != '<' && name[0] != '>') || strcmp(name, "<>") == 0)
		return;
	foreach(cell, operation->args)
		ordered_check_row(lfirst(cell));
}

void
cfd_check_ordered(Node *node)
{
	ListCell   *cell;

	if (IsA(node, OpExpr))
		check_compared((OpExpr *) node);
	else if (IsA(node, Aggref) && ((Aggref *) node)->aggkind == AGGKIND_NORMAL)
		check_sorted(((Aggref *) node)->aggorder, ((Aggref *) node)->args);
	else if (IsA(node, MinMaxExpr))
	{
		foreach(cell, ((MinMaxExpr *) node)->args)
		{
			if (cfd_cell_has_token(exprType(lfirst(cell))))
				ordered_refuse(exprType(lfirst(cell)));
			ordered_check_row(lfirst(cell));
		}
	}
}
