/*
 * shown.c
 *	  Queries whose results are to be signed (ledger/signed.c) get
 *	  additional columns at the end: tableoid and ctid of each ledger table
 *	  whose columns they return. With these the keeper can be told which
 *	  row version each row shows.
 *
 * Not done for grouped, distinct or combined results, nor for subqueries and
 * views, where a row is not that of a single version.
 *
 * Invariant: the query's own columns keep their contents and positions.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_type.h"
#include "compat/compat.h"
#include "hooks/hooks.h"
#include "ledger/ledger.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "value/types.h"

/*
 * Whether the relation is a ledger table, a history, or a table partitioned
 * into such, and may be read by the user.
 */
static bool
is_ledger(Oid relation)
{
	AttrNumber	number = get_attnum(relation, "sn");

	return number != InvalidAttrNumber && cfd_ledger_role(get_atttype(relation, number)) != CFD_NO_LEDGER &&
		pg_class_aclcheck(relation, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

/*
 * Position in `tables` of the table whose column the target is, from 1; 0 if
 * there is none.
 */
static int
source_of(const Query *query, const TargetEntry *target, List **tables)
{
	const Var  *var = (const Var *) target->expr;
	const RangeTblEntry *entry;
	ListCell   *cell;
	int			number = 0;

	if (!IsA(var, Var) || var->varlevelsup != 0 || var->varattno <= 0)
		return 0;
	foreach(cell, *tables)
	{
		number++;
		if (lfirst_int(cell) == var->varno)
			return number;
	}
	entry = rt_fetch(var->varno, query->rtable);
	if (entry->rtekind != RTE_RELATION || number == CFD_SIGNED_SOURCES_MAX || !is_ledger(entry->relid))
		return 0;
	*tables = lappend_int(*tables, var->varno);
	return number + 1;
}

static Var *
system_column(Query *query, int table, AttrNumber number, Oid type)
{
	RangeTblEntry *entry = rt_fetch(table, query->rtable);
	CfdPermissions *permissions = CFD_PERMISSIONS(query, entry);

	permissions->selectedCols = bms_add_member(permissions->selectedCols, number - FirstLowInvalidHeapAttributeNumber);
	return makeVar(table, number, type, -1, InvalidOid, 0);
}

/*
 * Adds the tables' columns after the visible columns of the query and before
 * the resjunk ones.
 */
static void
add_columns(Query *query, List *tables)
{
	List	   *shown = NIL;
	List	   *rest = NIL;
	ListCell   *cell;
	int			number = 0;

	foreach(cell, query->targetList)
	{
		TargetEntry *target = lfirst_node(TargetEntry, cell);

		if (target->resjunk)
			rest = lappend(rest, target);
		else
			shown = lappend(shown, target);
	}
	foreach(cell, tables)
	{
		Var		   *of = system_column(query, lfirst_int(cell), TableOidAttributeNumber, OIDOID);
		Var		   *at = system_column(query, lfirst_int(cell), SelfItemPointerAttributeNumber, TIDOID);

		shown = lappend(shown, makeTargetEntry((Expr *) of, 0, "tableoid", false));
		shown = lappend(shown, makeTargetEntry((Expr *) at, 0, "ctid", false));
	}
	query->targetList = list_concat(shown, rest);
	foreach(cell, query->targetList)
		lfirst_node(TargetEntry, cell)->resno = ++number;
}

void
cfd_shown_find(const ParseState *state, Query *query)
{
	CfdSignedSources *sources = cfd_signed_sources;
	List	   *tables = NIL;
	ListCell   *cell;
	bool		simple = query->setOperations == NULL && query->groupClause == NIL && query->groupingSets == NIL &&
	!query->hasAggs && query->havingQual == NULL && query->distinctClause == NIL;

	if (sources == NULL || query->commandType != CMD_SELECT || state->p_sourcetext == NULL ||
		strcmp(state->p_sourcetext, sources->query) != 0)
		return;
	sources->columns = 0;
	foreach(cell, query->targetList)
	{
		TargetEntry *target = lfirst_node(TargetEntry, cell);

		if (target->resjunk || sources->columns > MaxTupleAttributeNumber)
			continue;
		sources->of[sources->columns++] = simple ? source_of(query, target, &tables) : 0;
	}
	sources->count = list_length(tables);
	if (sources->count > 0)
		add_columns(query, tables);
}
