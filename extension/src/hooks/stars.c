/*
 * stars.c
 *	  Removes the columns sn, valid_from and by of a ledger table from the
 *	  expansion of a star, in the target list or RETURNING list of the
 *	  top-level statement.
 *
 * A query that names these columns gets them. Not handled: arms of UNION and
 * the like, the SELECT of an INSERT, statements in function bodies, whole-row
 * references.
 *
 * A column comes from a star if several columns have the same location in the
 * query text, since all columns of one star do; columns that are written out
 * have a location each.
 *
 * Invariant: the proxy follows the same rules (crates/rewrite, `Col::own`);
 * otherwise it would expect protected columns in other positions.
 */
#include "postgres.h"

#include "hooks/hooks.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "value/types.h"

static bool
is_own_name(const char *name)
{
	return name != NULL &&
		(strcmp(name, "sn") == 0 || strcmp(name, "valid_from") == 0 || strcmp(name, "by") == 0);
}

/*
 * Whether it is one of the columns that a ledger table has in addition to its
 * definition.
 */
static bool
is_own_column(Oid relation, AttrNumber number)
{
	AttrNumber	first = get_attnum(relation, "sn");

	return first != InvalidAttrNumber && is_own_name(get_attname(relation, number, true)) &&
		cfd_ledger_role(get_atttype(relation, first)) == CFD_LEDGER_TABLE;
}

/* The column, if the target comes from a star; otherwise NULL. */
static Var *
of_star(List *targets, TargetEntry *target)
{
	Var		   *var = (Var *) target->expr;
	ListCell   *cell;

	if (target->resjunk || !IsA(var, Var) || var->varlevelsup != 0 || var->varattno <= 0)
		return NULL;
	if (var->location < 0)
		return var;				/* TABLE t */
	foreach(cell, targets)
	{
		TargetEntry *other = lfirst_node(TargetEntry, cell);

		if (other != target && IsA(other->expr, Var) && ((Var *) other->expr)->location == var->location)
			return var;
	}
	return NULL;
}

/*
 * Recognises the query that the proxy generates for confide.as_of, where the
 * number is cast to its domain.
 */
static bool
is_as_of(List *targets, TargetEntry *target)
{
	ListCell   *cell;

	if (!is_own_name(target->resname))
		return false;
	foreach(cell, targets)
	{
		TargetEntry *other = lfirst_node(TargetEntry, cell);

		if (IsA(other->expr, CoerceToDomain) && other->resname != NULL && strcmp(other->resname, "sn") == 0 &&
			cfd_ledger_role(((CoerceToDomain *) other->expr)->resulttype) == CFD_LEDGER_TABLE)
			return true;
	}
	return false;
}

static List *
shown_targets(const Query *query)
{
	return query->commandType == CMD_SELECT ? query->targetList : query->returningList;
}

static bool is_added(List *queries, TargetEntry *target);

static bool
is_added_of(List *queries, int number)
{
	Query	   *query = linitial_node(Query, queries);
	TargetEntry *target = get_tle_by_resno(shown_targets(query), number);

	if (query->setOperations != NULL || target == NULL)
		return false;
	return is_as_of(shown_targets(query), target) || is_added(queries, target);
}

static bool
is_added_of_cte(List *queries, const RangeTblEntry *entry, int number)
{
	List	   *outer = list_copy_tail(queries, entry->ctelevelsup);
	ListCell   *cell;

	if (outer == NIL)
		return false;
	foreach(cell, linitial_node(Query, outer)->cteList)
	{
		CommonTableExpr *cte = lfirst_node(CommonTableExpr, cell);

		if (strcmp(cte->ctename, entry->ctename) == 0 && IsA(cte->ctequery, Query) && !cte->cterecursive)
			return is_added_of(lcons(cte->ctequery, outer), number);
	}
	return false;
}

/* Whether a target of the first query is such a column and was not written out. */
static bool
is_added(List *queries, TargetEntry *target)
{
	Query	   *query = linitial_node(Query, queries);
	Var		   *var = of_star(shown_targets(query), target);
	RangeTblEntry *entry;

	if (var == NULL)
		return false;
	entry = rt_fetch(var->varno, query->rtable);
	switch (entry->rtekind)
	{
		case RTE_RELATION:
			return is_own_column(entry->relid, var->varattno);
		case RTE_SUBQUERY:
			return is_added_of(lcons(entry->subquery, list_copy(queries)), var->varattno);
		case RTE_CTE:
			return is_added_of_cte(queries, entry, var->varattno);
		default:
			return false;
	}
}

/* SELECT DISTINCT compares visible columns only. */
static void
forget_distinct(Query *query, TargetEntry *target)
{
	ListCell   *cell;

	if (query->hasDistinctOn || target->ressortgroupref == 0)
		return;
	foreach(cell, query->distinctClause)
	{
		if (lfirst_node(SortGroupClause, cell)->tleSortGroupRef == target->ressortgroupref)
			query->distinctClause = foreach_delete_current(query->distinctClause, cell);
	}
}

static bool
is_sorted_by(const Query *query, Index reference)
{
	return get_sortgroupref_clause_noerr(reference, query->sortClause) != NULL ||
		get_sortgroupref_clause_noerr(reference, query->groupClause) != NULL ||
		get_sortgroupref_clause_noerr(reference, query->distinctClause) != NULL;
}

/* Whether the statement needs the target for another purpose. */
static bool
is_needed(Query *query, TargetEntry *target)
{
	ListCell   *cell;

	if (target->ressortgroupref == 0)
		return false;
	forget_distinct(query, target);
	foreach(cell, query->windowClause)
	{
		WindowClause *window = lfirst_node(WindowClause, cell);

		if (get_sortgroupref_clause_noerr(target->ressortgroupref, window->partitionClause) != NULL ||
			get_sortgroupref_clause_noerr(target->ressortgroupref, window->orderClause) != NULL)
			return true;
	}
	return is_sorted_by(query, target->ressortgroupref);
}

static void
refuse_order(const Query *query, const TargetEntry *target)
{
	if (query->distinctClause != NIL && !query->hasDistinctOn)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
				 errmsg("for SELECT DISTINCT, ORDER BY expressions must appear in select list"),
				 errdetail("A star does not stand for column \"%s\" of a ledger table.", target->resname),
				 errhint("Write the columns into the select list.")));
}

static List *
without_own(Query *query, List *targets)
{
	List	   *queries = list_make1(query);
	List	   *own = NIL;
	List	   *shown = NIL;
	List	   *rest = NIL;
	ListCell   *cell;
	int			number = 0;

	foreach(cell, targets)
	{
		if (is_added(queries, lfirst_node(TargetEntry, cell)))
			own = lappend(own, lfirst(cell));
	}
	if (own == NIL)
		return targets;
	foreach(cell, targets)
	{
		TargetEntry *target = lfirst_node(TargetEntry, cell);

		if (!list_member_ptr(own, target))
		{
			if (target->resjunk)
				rest = lappend(rest, target);
			else
				shown = lappend(shown, target);
		}
		else if (is_needed(query, target))
		{
			refuse_order(query, target);
			target->resjunk = true;
			rest = lappend(rest, target);
		}
	}
	shown = list_concat(shown, rest);
	foreach(cell, shown)
		lfirst_node(TargetEntry, cell)->resno = ++number;
	return shown;
}

/* Whether there is a version number among the targets, which is rare. */
static bool
has_number(List *targets)
{
	ListCell   *cell;

	foreach(cell, targets)
	{
		TargetEntry *target = lfirst_node(TargetEntry, cell);

		if (IsA(target->expr, Var) && cfd_ledger_role(((Var *) target->expr)->vartype) == CFD_LEDGER_TABLE)
			return true;
	}
	return false;
}

void
cfd_stars_narrow(const ParseState *state, Query *query)
{
	/* Functions get the columns they were written for. */
	if (state->p_pre_columnref_hook != NULL || state->p_post_columnref_hook != NULL ||
		query->setOperations != NULL)
		return;
	if (query->commandType == CMD_SELECT && has_number(query->targetList))
		query->targetList = without_own(query, query->targetList);
	else if (query->returningList != NIL && has_number(query->returningList))
		query->returningList = without_own(query, query->returningList);
}
