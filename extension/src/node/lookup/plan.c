/*
 * plan.c
 *	  Inserts ConfideLookup into finished plans; see lookup.h.
 *
 * The node is placed above the outer side of a nested loop if the inner side
 * is a B-tree scan by equality on the first columns of the index, all of them
 * protected and ascending, with at least one value taken from the outer row.
 *
 * Invariant: as in lookup.h.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "index/ahead.h"
#include "index/search.h"
#include "miscadmin.h"
#include "node/lookup/lookup.h"
#include "node/tokens/tokens.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "value/types.h"

static bool cfd_enable_batch_lookup = true;

/* Allocator of plan_node_ids. */
typedef struct Numbers
{
	int			last_id;
} Numbers;

/* ---------- keys ---------- */

/*
 * A condition's value as an expression over the node's own rows. Returns NULL
 * if it is not of a supported form.
 */
static Expr *
value_of_row(const NestLoop *join, Node *value, bool *of_row)
{
	const Param *param = (const Param *) value;
	ListCell   *cell;

	if (IsA(value, Const) || (IsA(value, Param) && param->paramkind == PARAM_EXTERN))
		return copyObject((Expr *) value);
	if (!IsA(value, Param) || param->paramkind != PARAM_EXEC)
		return NULL;
	foreach(cell, join->nestParams)
	{
		const NestLoopParam *nest = lfirst_node(NestLoopParam, cell);

		if (nest->paramno != param->paramid || !IsA(nest->paramval, Var) || nest->paramval->varattno <= 0)
			continue;
		*of_row = true;
		return (Expr *) makeVar(INDEX_VAR, nest->paramval->varattno, nest->paramval->vartype,
								nest->paramval->vartypmod, nest->paramval->varcollid, 0);
	}
	return NULL;
}

/*
 * The value that an index column must equal. Returns NULL unless the column
 * has exactly one condition, an equality.
 */
static Expr *
value_of_column(const NestLoop *join, List *quals, Relation index, int column, bool *of_row)
{
	Expr	   *found = NULL;
	ListCell   *cell;

	foreach(cell, quals)
	{
		const OpExpr *qual = lfirst(cell);
		const Var  *key;

		if (!IsA(qual, OpExpr) || list_length(qual->args) != 2)
			return NULL;
		key = linitial(qual->args);
		if (!IsA(key, Var) || key->varattno != column)
			continue;
		if (found != NULL ||
			get_op_opfamily_strategy(qual->opno, index->rd_opfamily[column - 1]) != BTEqualStrategyNumber)
			return NULL;
		found = value_of_row(join, lsecond(qual->args), of_row);
		if (found == NULL)
			return NULL;
	}
	return found;
}

/*
 * The values by which the index is searched for a row, column by column.
 * Returns NIL if the node cannot help.
 */
static List *
keys_of(const NestLoop *join, List *quals, Relation index)
{
	List	   *keys = NIL;
	bool		of_row = false;

	if (index->rd_rel->relam != BTREE_AM_OID || list_length(quals) > CFD_OUTER_COLUMNS_MAX)
		return NIL;
	for (int column = 1; column <= list_length(quals); column++)
	{
		Expr	   *key = NULL;

		if (column <= IndexRelationGetNumberOfKeyAttributes(index) &&
			cfd_type_code(index->rd_opcintype[column - 1]) != 0 &&
			(index->rd_indoption[column - 1] & INDOPTION_DESC) == 0)
			key = value_of_column(join, quals, index, column, &of_row);
		if (key == NULL || cfd_type_code(exprType((Node *) key)) == 0)
			return NIL;
		keys = lappend(keys, key);
	}
	return of_row ? keys : NIL;
}

/* ---------- plans ---------- */

/* Makes a target list that passes on the columns of another one, read from varno. */
static List *
cfd_lookup_plan_pass_on(const List *targets, int varno)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, targets)
	{
		TargetEntry *entry = flatCopyTargetEntry(lfirst_node(TargetEntry, cell));
		Node	   *expr = (Node *) entry->expr;

		entry->expr = (Expr *) makeVar(varno, entry->resno, exprType(expr), exprTypmod(expr), exprCollation(expr), 0);
		result = lappend(result, entry);
	}
	return result;
}

static void
put_above_outer(Numbers *numbers, NestLoop *join)
{
	Plan	   *outer = outerPlan(join);
	Plan	   *inner = innerPlan(join);
	CustomScan *node;
	Relation	index;
	List	   *quals;
	List	   *keys;
	Oid			id;

	if (IsA(inner, IndexScan))
	{
		id = ((IndexScan *) inner)->indexid;
		quals = ((IndexScan *) inner)->indexqual;
	}
	else if (IsA(inner, IndexOnlyScan))
	{
		id = ((IndexOnlyScan *) inner)->indexid;
		quals = ((IndexOnlyScan *) inner)->indexqual;
	}
	else
		return;
	if (cfd_has_effects(outer))
		return;
	index = index_open(id, NoLock);
	keys = keys_of(join, quals, index);
	index_close(index, NoLock);
	if (keys == NIL)
		return;
	node = makeNode(CustomScan);
	node->scan.plan = *outer;
	node->scan.plan.type = T_CustomScan;
	node->scan.plan.plan_node_id = ++numbers->last_id;
	node->scan.plan.initPlan = NIL;
	node->scan.plan.qual = NIL;
	node->scan.plan.lefttree = outer;
	node->scan.plan.righttree = NULL;
	node->scan.plan.parallel_aware = false;
	node->scan.plan.async_capable = false;
	node->scan.plan.targetlist = cfd_lookup_plan_pass_on(outer->targetlist, INDEX_VAR);
	node->custom_scan_tlist = cfd_lookup_plan_pass_on(outer->targetlist, OUTER_VAR);
	node->custom_exprs = keys;
	node->custom_private = list_make2(makeInteger(inner->plan_node_id), list_make1_oid(id));
	node->methods = &cfd_lookup_methods;
	outerPlan(join) = &node->scan.plan;
}

/* ---------- traversal ---------- */

static void
find_last(Numbers *numbers, Plan *plan)
{
	ListCell   *cell;

	if (plan == NULL)
		return;
	check_stack_depth();
	numbers->last_id = Max(numbers->last_id, plan->plan_node_id);
	find_last(numbers, plan->lefttree);
	find_last(numbers, plan->righttree);
	foreach(cell, cfd_other_children(plan))
		find_last(numbers, lfirst(cell));
}

static void
look_through(Numbers *numbers, Plan *plan, bool early)
{
	ListCell   *cell;

	if (plan == NULL)
		return;
	check_stack_depth();
	if (IsA(plan, NestLoop) && !cfd_ends_early(plan, false, early))
		put_above_outer(numbers, (NestLoop *) plan);
	look_through(numbers, plan->lefttree, cfd_ends_early(plan, false, early));
	look_through(numbers, plan->righttree, cfd_ends_early(plan, true, early));
	foreach(cell, cfd_other_children(plan))
		look_through(numbers, lfirst(cell), early);
}

bool
cfd_lookup_wanted(Query *query)
{
	return cfd_enable_batch_lookup && cfd_enable_index_search && OidIsValid(cfd_access_method());
}

void
cfd_lookup_pass(PlannedStmt *statement, int options)
{
	const int	cursor = CURSOR_OPT_SCROLL | CURSOR_OPT_NO_SCROLL | CURSOR_OPT_HOLD | CURSOR_OPT_FAST_PLAN;
	Numbers		numbers = {0};
	ListCell   *cell;

	find_last(&numbers, statement->planTree);
	foreach(cell, statement->subplans)
		find_last(&numbers, lfirst(cell));
	/* A cursor or a subplan may be read for a single row only. */
	look_through(&numbers, statement->planTree, (options & cursor) != 0);
	foreach(cell, statement->subplans)
		look_through(&numbers, lfirst(cell), true);
}

void
cfd_lookup_init(void)
{
	DefineCustomBoolVariable("confide.enable_batch_lookup",
							 "Protected keys that a nested loop looks up in an index are asked about by the batch.",
							 NULL,
							 &cfd_enable_batch_lookup,
							 true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	RegisterCustomScanMethods(&cfd_lookup_methods);
}
