/*
 * plan.c
 *	  Inserts ConfidePromote into finished plans; see promote.h.
 *
 * The node is placed below a ModifyTable that writes several rows, by the
 * planner's estimate, into one table of the access method "confide".
 *
 * Invariant: as in promote.h. The node is not used where a volatile function
 * other than nextval is called, nor where rows may be skipped because of a
 * conflict.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "node/promote/promote.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "value/types.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

bool		cfd_enable_batch_promote = true;

/*
 * Makes a target list that passes on the columns of another one, read from
 * varno. A NULL constant is kept, because PostgreSQL expects one in place of a
 * dropped column.
 */
static List *
cfd_promote_plan_pass_on(const List *targets, int varno)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, targets)
	{
		TargetEntry *entry = flatCopyTargetEntry(lfirst_node(TargetEntry, cell));
		Node	   *expr = (Node *) entry->expr;

		if (!(IsA(expr, Const) && ((Const *) expr)->constisnull))
			entry->expr = (Expr *) makeVar(varno, entry->resno, exprType(expr), exprTypmod(expr),
									   exprCollation(expr), 0);
		result = lappend(result, entry);
	}
	return result;
}

static bool
is_ours(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	bool		ours;

	if (!HeapTupleIsValid(tuple))
		return false;
	ours = ((Form_pg_class) GETSTRUCT(tuple))->relam == cfd_access_method() &&
		((Form_pg_class) GETSTRUCT(tuple))->relkind == RELKIND_RELATION;
	ReleaseSysCache(tuple);
	return ours;
}

/* Attribute numbers that the columns of the rows are written to. */
static List *
written(const ModifyTable *modify)
{
	List	   *numbers = NIL;
	ListCell   *cell;

	if (modify->operation == CMD_UPDATE)
		return linitial(modify->updateColnosLists);
	foreach(cell, outerPlan(modify)->targetlist)
	{
		if (!lfirst_node(TargetEntry, cell)->resjunk)
			numbers = lappend_int(numbers, list_length(numbers) + 1);
	}
	return numbers;
}

static bool
writes_protected(Oid relation, const List *numbers)
{
	ListCell   *cell;

	foreach(cell, numbers)
	{
		if (cfd_type_code(get_atttype(relation, lfirst_int(cell))) != 0)
			return true;
	}
	return false;
}

static void
put_below(ModifyTable *modify, const List *range_table)
{
	Plan	   *below = outerPlan(modify);
	CustomScan *node;
	List	   *numbers;
	Oid			relation;
	int			number;

	if ((modify->operation != CMD_UPDATE && modify->operation != CMD_INSERT) ||
		list_length(modify->resultRelations) != 1 || modify->onConflictAction != ONCONFLICT_NONE ||
		below->plan_rows < 2)
		return;
	number = linitial_int(modify->resultRelations);
	relation = rt_fetch(number, range_table)->relid;
	numbers = written(modify);
	if (!is_ours(relation) || !writes_protected(relation, numbers))
		return;
	node = makeNode(CustomScan);
	node->scan.plan = *below;
	node->scan.plan.type = T_CustomScan;
	node->scan.plan.initPlan = NIL;
	node->scan.plan.qual = NIL;
	node->scan.plan.lefttree = below;
	node->scan.plan.righttree = NULL;
	node->scan.plan.targetlist = cfd_promote_plan_pass_on(below->targetlist, INDEX_VAR);
	node->scan.plan.parallel_aware = false;
	node->custom_scan_tlist = cfd_promote_plan_pass_on(below->targetlist, OUTER_VAR);
	node->custom_private = list_make2(list_make1_int(number), list_copy(numbers));
	node->methods = &cfd_promote_methods;
	outerPlan(modify) = &node->scan.plan;
}

bool
cfd_promote_wanted(Query *query)
{
	return cfd_enable_batch_promote && OidIsValid(cfd_access_method()) &&
		(query->commandType == CMD_UPDATE || query->commandType == CMD_INSERT || query->hasModifyingCTE) &&
		!contain_volatile_functions_not_nextval((Node *) query);
}

void
cfd_promote_pass(PlannedStmt *statement, int options)
{
	ListCell   *cell;

	if (IsA(statement->planTree, ModifyTable))
		put_below((ModifyTable *) statement->planTree, statement->rtable);
	foreach(cell, statement->subplans)
	{
		if (lfirst(cell) != NULL && IsA(lfirst(cell), ModifyTable))
			put_below(lfirst(cell), statement->rtable);
	}
}

void
cfd_promote_init(void)
{
	DefineCustomBoolVariable("confide.enable_batch_promote",
							 "Values that several rows are given by UPDATE and INSERT are promoted together.",
							 NULL, &cfd_enable_batch_promote, true, PGC_USERSET, 0, NULL, NULL, NULL);
	RegisterCustomScanMethods(&cfd_promote_methods);
}
