/*
 * wanted.c
 *	  What the keeper can group and aggregate exactly; see wanted.h.
 *
 * Invariant: as in wanted.h.
 */
#include "postgres.h"

#include "order/plain.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_constraint.h"
#include "cell/cell.h"
#include "node/aggregate/aggregate.h"
#include "node/aggregate/wanted.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "program/registry.h"
#include "value/types.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* ---------- capabilities ---------- */

bool
cfd_is_raw_type(Oid type)
{
	return type == CHAROID || cfd_plain_key(type);
}

/*
 * Whether the expression can be a grouping key or argument: it is protected,
 * or equal exactly if its bytes are.
 */
static bool
can_group(CfdWanted *wanted, Node *expr)
{
	Oid			type = exprType(expr);

	if (contain_subplans(expr) || contain_volatile_functions(expr))
		return false;
	if (cfd_family_code(type) == 0)
		return cfd_is_raw_type(type);
	/* What has tokens is grouped without the keeper. */
	wanted->protected |= !cfd_cell_has_token(type);
	return true;
}

/* The keeper's number of an aggregate; 0 for count, -1 if it has none. */
int
cfd_aggregate_number(const Aggref *aggref)
{
	HeapTuple	tuple;
	const CfdFunction *step = NULL;

	if (aggref->aggfnoid == F_COUNT_ || aggref->aggfnoid == F_COUNT_ANY)
		return 0;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggref->aggfnoid));
	if (HeapTupleIsValid(tuple))
	{
		step = cfd_function(((Form_pg_aggregate) GETSTRUCT(tuple))->aggtransfn);
		ReleaseSysCache(tuple);
	}
	return step != NULL && step->call == CFD_CALL_AGGREGATE_STEP ? step->signature : -1;
}

/*
 * Whether DISTINCT is exact. PostgreSQL keeps an arbitrary one of equal values
 * and adds them in sorted order, which matters for some types.
 */
static bool
distinct_is_exact(Node *argument)
{
	switch (cfd_family_code(exprType(argument)))
	{
		case CFD_TYPE_FLOAT4:
		case CFD_TYPE_FLOAT8:
		case CFD_TYPE_INTERVAL:
			return false;
		case CFD_TYPE_NUMERIC:
			return exprTypmod(argument) >= 0;
		default:
			return true;
	}
}

static bool
is_int4(Node *expr, int32 value)
{
	return expr != NULL && IsA(expr, Const) && !((Const *) expr)->constisnull &&
		((Const *) expr)->consttype == INT4OID && DatumGetInt32(((Const *) expr)->constvalue) == value;
}

/*
 * If the aggregate is sum(CASE WHEN condition THEN 1 ELSE 0 END), which counts
 * the rows that satisfy the condition, returns that condition; otherwise NULL.
 */
Expr *
cfd_aggregate_counted_condition(const Aggref *aggref, bool grouped)
{
	CaseExpr   *expr;

	if (!grouped || aggref->aggfnoid != F_SUM_INT4 || aggref->aggdistinct != NIL ||
		aggref->aggorder != NIL || aggref->aggfilter != NULL)
		return NULL;
	expr = (CaseExpr *) linitial_node(TargetEntry, aggref->args)->expr;
	if (!IsA(expr, CaseExpr) || expr->arg != NULL || list_length(expr->args) != 1 ||
		!is_int4((Node *) linitial_node(CaseWhen, expr->args)->result, 1) ||
		!is_int4((Node *) expr->defresult, 0))
		return NULL;
	return linitial_node(CaseWhen, expr->args)->expr;
}

/* Whether rows that satisfy the condition can be counted. */
static bool
can_filter(CfdWanted *wanted, Expr *condition)
{
	if (contain_subplans((Node *) condition) || contain_volatile_functions((Node *) condition))
		return false;
	wanted->careful = true;
	wanted->protected |= cfd_compilable((Node *) condition);
	return true;
}

static bool
can_aggregate(CfdWanted *wanted, const Aggref *aggref)
{
	int			number = cfd_aggregate_number(aggref);
	Expr	   *counted = cfd_aggregate_counted_condition(aggref, wanted->keys != NIL);
	Node	   *argument = NULL;

	if (counted != NULL && aggref->agglevelsup == 0 && aggref->aggsplit == AGGSPLIT_SIMPLE)
		return can_filter(wanted, counted);

	if (number < 0 || aggref->aggkind != AGGKIND_NORMAL || aggref->aggdirectargs != NIL ||
		aggref->aggorder != NIL || aggref->aggvariadic || aggref->agglevelsup != 0 ||
		aggref->aggsplit != AGGSPLIT_SIMPLE || list_length(aggref->args) > 1)
		return false;
	if (aggref->args != NIL)
		argument = (Node *) linitial_node(TargetEntry, aggref->args)->expr;
	if (aggref->aggfilter != NULL && !can_filter(wanted, aggref->aggfilter))
		return false;
	if (argument == NULL)
		return true;
	if (contain_subplans(argument) || contain_volatile_functions(argument))
		return false;
	if (number == 0 && aggref->aggdistinct == NIL && cfd_type_code(exprType(argument)) == 0)
		return true;			/* only whether it is NULL matters */
	if (!can_group(wanted, argument))
		return false;
	return aggref->aggdistinct == NIL || number == 0 || distinct_is_exact(argument);
}

/*
 * Whether a column that is not a key is functionally dependent on the keys
 * because these include the table's primary key. A column in a key expression
 * that is not recognised, since its constants were folded again here, is not.
 */
static bool
depends_on_keys(const CfdWanted *wanted, Node *node)
{
	Var		   *var = (Var *) node;
	List	   *constraints = NIL;
	RangeTblEntry *entry;

	if (!IsA(node, Var))
		return false;
	entry = planner_rt_fetch(var->varno, wanted->root);
	return entry->rtekind == RTE_RELATION &&
		check_functional_grouping(entry->relid, var->varno, 0, wanted->keys, &constraints);
}

/* Tree walker that collects the aggregates of the target list and HAVING. */
bool
cfd_aggregate_collect(Node *node, CfdWanted *wanted)
{
	if (node == NULL || wanted->impossible)
		return false;
	if (list_member(wanted->keys, node))
		return false;
	if (IsA(node, Aggref))
	{
		if (!can_aggregate(wanted, (Aggref *) node))
			wanted->impossible = true;
		wanted->aggrefs = list_append_unique(wanted->aggrefs, node);
		return false;
	}
	if (IsA(node, Var) || IsA(node, PlaceHolderVar))
	{
		/* As an additional key it does not change the groups. */
		if (!depends_on_keys(wanted, node) || !can_group(wanted, node))
			wanted->impossible = true;
		wanted->keys = lappend(wanted->keys, node);
		return false;
	}
	if (IsA(node, GroupingFunc))
	{
		wanted->impossible = true;
		return false;
	}
	return expression_tree_walker(node, cfd_aggregate_collect, wanted);
}

/* Collects the keys of GROUP BY or DISTINCT. */
bool
cfd_aggregate_collect_keys(PlannerInfo *root, List *clauses, CfdWanted *wanted)
{
	ListCell   *cell;

	foreach(cell, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, cell);
		Node	   *key = get_sortgroupclause_expr(clause, root->processed_tlist);
		TypeCacheEntry *entry = lookup_type_cache(exprType(key), TYPECACHE_EQ_OPR);

		if (clause->eqop != entry->eq_opr || !can_group(wanted, key))
			return false;
		wanted->keys = list_append_unique(wanted->keys, key);
	}
	return true;
}

/*
 * Whether all inputs are plain columns, which can be read even for rows that
 * are filtered out.
 */
bool
cfd_aggregate_inputs_are_columns(CfdCompiler *compiler, Node *expr)
{
	if (IsA(expr, Var) || IsA(expr, Const) || IsA(expr, Param))
		return true;
	if (cfd_compile(compiler, expr) == NULL)
		return false;
	for (int i = 0; i < compiler->count; i++)
	{
		if (!compiler->inputs[i].constant && !IsA(compiler->inputs[i].expr, Var))
			return false;
	}
	return true;
}

bool
cfd_aggregate_arguments_are_columns(CfdWanted *wanted)
{
	CfdCompiler *compiler = cfd_compiler();
	ListCell   *cell;

	foreach(cell, wanted->aggrefs)
	{
		Aggref	   *aggref = lfirst_node(Aggref, cell);

		if (aggref->args != NIL && cfd_aggregate_counted_condition(aggref, wanted->keys != NIL) == NULL &&
			!cfd_aggregate_inputs_are_columns(compiler, (Node *) linitial_node(TargetEntry, aggref->args)->expr))
			return false;
	}
	return true;
}

bool
cfd_aggregate_keys_are_columns(CfdWanted *wanted)
{
	CfdCompiler *compiler = cfd_compiler();
	ListCell   *cell;

	foreach(cell, wanted->keys)
	{
		if (!cfd_aggregate_inputs_are_columns(compiler, lfirst(cell)))
			return false;
	}
	return true;
}
