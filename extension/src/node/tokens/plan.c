/*
 * plan.c
 *	  Inserts ConfideTokens into finished plans; see tokens.h.
 *
 * A hash join with protected keys gets a node below each side, and hashes a
 * single token in place of all protected keys; plain keys are kept. A hash
 * aggregate (DISTINCT, UNION, INTERSECT, EXCEPT, or a GROUP BY that the keeper
 * cannot do) gets one node. Joining, grouping and spilling remain
 * PostgreSQL's. A hash table shared by parallel workers is left alone.
 *
 * Invariant: as in tokens.h; columns keep their numbers, and the token is
 * appended.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "node/sort/sort.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "node/tokens/tokens.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "plan/quals.h"
#include "program/registry.h"
#include "value/types.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

bool		cfd_enable_hash_tokens = true;

typedef CfdTokensPlace Place;

/* ---------- which keys ---------- */

/* Types whose values can be compared with each other share a number. */
static int
family(uint8 type)
{
	switch (type)
	{
		case CFD_TYPE_INT2:
		case CFD_TYPE_INT4:
			return CFD_TYPE_INT8;
		case CFD_TYPE_FLOAT4:
			return CFD_TYPE_FLOAT8;
		case CFD_TYPE_VARCHAR:
			return CFD_TYPE_TEXT;
		default:
			return type;
	}
}

static bool
has_params(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan))
		return true;
	return expression_tree_walker(node, has_params, context);
}

bool
cfd_has_tokens(Oid equality, Node *left, Node *right)
{
	const CfdFunction *function = cfd_function(get_opcode(equality));
	uint8		type = cfd_type_code(exprType(left));

	return type != 0 && function != NULL && function->call == CFD_CALL_TEST &&
		family(type) == family(cfd_type_code(exprType(right))) &&
		!has_params(left, NULL) && !has_params(right, NULL) &&
		!contain_volatile_functions(left) && !contain_volatile_functions(right);
}

/* ---------- the node ---------- */

/* Columns of a row as the node above sees them. */
static List *
columns_of(List *targets, int varno)
{
	List	   *columns = NIL;
	ListCell   *cell;

	foreach(cell, targets)
	{
		TargetEntry *entry = flatCopyTargetEntry(lfirst_node(TargetEntry, cell));

		entry->expr = (Expr *) makeVar(varno, entry->resno, exprType((Node *) entry->expr),
									   exprTypmod((Node *) entry->expr), exprCollation((Node *) entry->expr), 0);
		columns = lappend(columns, entry);
	}
	return columns;
}

/* A key over the child's columns, as the node itself sees them. */
static Node *
own_columns(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var		   *var = copyObject((Var *) node);

		var->varno = INDEX_VAR;
		return (Node *) var;
	}
	return expression_tree_mutator(node, own_columns, context);
}

/*
 * Expression that EXPLAIN shows for a token: a hash of the keys. It is never
 * evaluated.
 */
static Expr *
shown(List *keys)
{
	return (Expr *) makeFuncExpr(F_UUID_HASH, UUIDOID, copyObject(keys), InvalidOid, InvalidOid,
								 COERCE_EXPLICIT_CALL);
}

static void
cfd_tokens_plan_set_costs(Plan *plan, const Plan *child, int keys)
{
	plan->startup_cost = child->startup_cost + cfd_round_trip_cost;
	plan->total_cost = child->total_cost + cfd_token_cost(child->plan_rows, keys);
	plan->plan_rows = child->plan_rows;
	CFD_DISABLED_AS(plan, child);
	plan->plan_width = child->plan_width + CFD_TOKEN_BYTES;
}

int
cfd_tokens_number(Place *place)
{
	int			number = list_length(place->statement->paramExecTypes);

	place->statement->paramExecTypes = lappend_oid(place->statement->paramExecTypes, INTERNALOID);
	return number;
}

Plan *
cfd_tokens_node(Place *place, Plan *child, List *keys, int number, bool nulls_equal, CfdTokensReading reading)
{
	CustomScan *node = makeNode(CustomScan);
	Plan	   *plan = &node->scan.plan;
	int			columns = list_length(child->targetlist);
	Expr	   *token = shown(keys);

	plan->plan_node_id = ++place->last_id;
	plan->parallel_safe = child->parallel_safe;
	plan->lefttree = child;
	plan->extParam = bms_copy(child->extParam);
	plan->allParam = bms_copy(child->allParam);
	cfd_tokens_plan_set_costs(plan, child, list_length(keys));
	node->custom_scan_tlist = lappend(columns_of(child->targetlist, OUTER_VAR),
									  makeTargetEntry(token, columns + 1, NULL, true));
	plan->targetlist = columns_of(node->custom_scan_tlist, INDEX_VAR);
	node->custom_private = list_make5(own_columns((Node *) keys, NULL), makeInteger(number),
									  makeInteger(nulls_equal), makeInteger(reading), makeInteger(0));
	node->methods = &cfd_tokens_methods;
	return plan;
}

static Var *
cfd_tokens_plan_token_of(const Plan *plan, int varno)
{
	return makeVar(varno, list_length(plan->targetlist), UUIDOID, -1, InvalidOid, 0);
}

/* ---------- plans ---------- */

List *
cfd_other_children(Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			return ((Append *) plan)->appendplans;
		case T_MergeAppend:
			return ((MergeAppend *) plan)->mergeplans;
		case T_BitmapAnd:
			return ((BitmapAnd *) plan)->bitmapplans;
		case T_BitmapOr:
			return ((BitmapOr *) plan)->bitmapplans;
		case T_SubqueryScan:
			return list_make1(((SubqueryScan *) plan)->subplan);
		case T_CustomScan:
			return ((CustomScan *) plan)->custom_plans;
		default:
			return NIL;
	}
}

bool
cfd_has_effects(Plan *plan)
{
	ListCell   *cell;

	if (plan == NULL)
		return false;
	if (IsA(plan, LockRows) || contain_volatile_functions((Node *) plan->targetlist) ||
		contain_volatile_functions((Node *) plan->qual) ||
		(IsA(plan, FunctionScan) && contain_volatile_functions((Node *) ((FunctionScan *) plan)->functions)) ||
		cfd_has_effects(plan->lefttree) || cfd_has_effects(plan->righttree))
		return true;
	foreach(cell, cfd_other_children(plan))
	{
		if (cfd_has_effects(lfirst(cell)))
			return true;
	}
	return false;
}

/* ---------- joins ---------- */

/*
 * Divides the keys into those that tokens can represent and, in "kept", the
 * positions of the others.
 */
static void
divide_keys(const HashJoin *join, const Hash *hash, List **outer, List **inner, List **kept)
{
	for (int i = 0; i < list_length(join->hashkeys); i++)
	{
		Node	   *left = list_nth(join->hashkeys, i);
		Node	   *right = list_nth(hash->hashkeys, i);

		if (cfd_has_tokens(list_nth_oid(join->hashoperators, i), left, right))
		{
			*outer = lappend(*outer, left);
			*inner = lappend(*inner, right);
		}
		else
			*kept = lappend_int(*kept, i);
	}
}

static List *
nodes_at(List *list, List *places)
{
	List	   *found = NIL;
	ListCell   *cell;

	foreach(cell, places)
		found = lappend(found, list_nth(list, lfirst_int(cell)));
	return found;
}

static List *
oids_at(List *list, List *places)
{
	List	   *found = NIL;
	ListCell   *cell;

	foreach(cell, places)
		found = lappend_oid(found, list_nth_oid(list, lfirst_int(cell)));
	return found;
}

/* Replaces the hash keys by the kept ones and the token. */
static void
hash_token(HashJoin *join, Hash *hash, List *kept)
{
	Var		   *left = cfd_tokens_plan_token_of(outerPlan(join), OUTER_VAR);
	Var		   *right = cfd_tokens_plan_token_of(&hash->plan, INNER_VAR);
	OpExpr	   *clause = (OpExpr *) make_opclause(CFD_TOKEN_EQUALITY, BOOLOID, false, (Expr *) left, (Expr *) right,
												  InvalidOid, InvalidOid);

	clause->opfuncid = F_UUID_EQ;
	join->hashclauses = lappend(nodes_at(join->hashclauses, kept), clause);
	join->hashoperators = lappend_oid(oids_at(join->hashoperators, kept), CFD_TOKEN_EQUALITY);
	join->hashcollations = lappend_oid(oids_at(join->hashcollations, kept), InvalidOid);
	join->hashkeys = lappend(nodes_at(join->hashkeys, kept), left);
	hash->hashkeys = lappend(nodes_at(hash->hashkeys, kept), cfd_tokens_plan_token_of(outerPlan(hash), OUTER_VAR));
	/* The statistics' most common values do not have the hashes of tokens. */
	hash->skewTable = InvalidOid;
}

static void
replace_join(Place *place, HashJoin *join, bool early)
{
	Hash	   *hash = (Hash *) innerPlan(join);
	List	   *outer = NIL;
	List	   *inner = NIL;
	List	   *kept = NIL;
	int			number;

	if (join->join.plan.parallel_aware || hash->plan.parallel_aware || (early && cfd_has_effects(outerPlan(join))))
		return;
	divide_keys(join, hash, &outer, &inner, &kept);
	if (outer == NIL)
		return;
	number = cfd_tokens_number(place);
	outerPlan(join) = cfd_tokens_node(place, outerPlan(join), outer, number, false,
								early ? CFD_TOKENS_SOME : CFD_TOKENS_MOST);
	outerPlan(hash) = cfd_tokens_node(place, outerPlan(hash), inner, number, false, CFD_TOKENS_ALL);
	hash->plan.targetlist = columns_of(outerPlan(hash)->targetlist, OUTER_VAR);
	hash->plan.plan_width += CFD_TOKEN_BYTES;
	hash_token(join, hash, kept);
}

/* ---------- aggregations ---------- */

/*
 * Makes a node that hashes columns of its child hash one token in place of the
 * protected ones, which are removed from its lists.
 */
static void
hash_columns(Place *place, Plan *plan, int *count, AttrNumber *numbers, Oid *operators, Oid *collations)
{
	List	   *columns = columns_of(outerPlan(plan)->targetlist, OUTER_VAR);
	List	   *keys = NIL;
	int			kept = 0;

	for (int i = 0; i < *count; i++)
	{
		Node	   *column = (Node *) list_nth_node(TargetEntry, columns, numbers[i] - 1)->expr;

		if (cfd_has_tokens(operators[i], column, column))
			keys = lappend(keys, column);
		else
		{
			numbers[kept] = numbers[i];
			operators[kept] = operators[i];
			collations[kept++] = collations[i];
		}
	}
	if (keys == NIL)
		return;
	outerPlan(plan) = cfd_tokens_node(place, outerPlan(plan), keys, -1, true, CFD_TOKENS_ALL);
	numbers[kept] = list_length(outerPlan(plan)->targetlist);
	operators[kept] = CFD_TOKEN_EQUALITY;
	collations[kept++] = InvalidOid;
	*count = kept;
}

static void
replace_aggregate(Place *place, Agg *agg)
{
	if (agg->aggstrategy == AGG_HASHED && agg->groupingSets == NIL && agg->chain == NIL)
		hash_columns(place, &agg->plan, &agg->numCols, agg->grpColIdx, agg->grpOperators, agg->grpCollations);
}

/* Handles INTERSECT and EXCEPT with one input, which has the rows of both tables. */
static void
replace_set_operation(Place *place, SetOp *set)
{
	if (set->strategy == SETOP_HASHED && innerPlan(set) == NULL)
		hash_columns(place, &set->plan, &set->numCols, CFD_SET_COLUMNS(set));
}

/* ---------- traversal ---------- */

static void
find_last_id(Place *place, Plan *plan)
{
	ListCell   *cell;

	if (plan == NULL)
		return;
	check_stack_depth();
	place->last_id = Max(place->last_id, plan->plan_node_id);
	find_last_id(place, plan->lefttree);
	find_last_id(place, plan->righttree);
	foreach(cell, cfd_other_children(plan))
		find_last_id(place, lfirst(cell));
}

CfdTokensPlace
cfd_tokens_place(PlannedStmt *statement)
{
	Place		place = {.statement = statement};
	ListCell   *cell;

	find_last_id(&place, statement->planTree);
	foreach(cell, statement->subplans)
		find_last_id(&place, lfirst(cell));
	return place;
}

bool
cfd_ends_early(const Plan *plan, bool inner, bool early)
{
	if (inner)
		return early || (IsA(plan, NestLoop) && (((const Join *) plan)->jointype == JOIN_SEMI ||
												 ((const Join *) plan)->jointype == JOIN_ANTI ||
												 ((const Join *) plan)->inner_unique));
	switch (nodeTag(plan))
	{
		case T_Limit:
			return true;
		case T_Sort:
		case T_Hash:
			return false;
		case T_Agg:
			return early && ((const Agg *) plan)->aggstrategy == AGG_SORTED;
		case T_CustomScan:
			return early && ((const CustomScan *) plan)->methods != &cfd_sort_methods;
		default:
			return early;
	}
}

static void
cfd_tokens_plan_replace(Place *place, Plan *plan, bool early)
{
	ListCell   *cell;

	if (plan == NULL)
		return;
	check_stack_depth();
	cfd_tokens_plan_replace(place, plan->lefttree, cfd_ends_early(plan, false, early));
	cfd_tokens_plan_replace(place, plan->righttree, cfd_ends_early(plan, true, early));
	foreach(cell, cfd_other_children(plan))
		cfd_tokens_plan_replace(place, lfirst(cell), early);
	if (IsA(plan, HashJoin))
		replace_join(place, (HashJoin *) plan, early);
	else if (IsA(plan, Agg))
		replace_aggregate(place, (Agg *) plan);
	else if (IsA(plan, SetOp))
		replace_set_operation(place, (SetOp *) plan);
}

bool
cfd_tokens_wanted(Query *query)
{
	return cfd_enable_hash_tokens && OidIsValid(cfd_access_method());
}

void
cfd_tokens_pass(PlannedStmt *statement, int options)
{
	const int	cursor = CURSOR_OPT_SCROLL | CURSOR_OPT_NO_SCROLL | CURSOR_OPT_HOLD | CURSOR_OPT_FAST_PLAN;
	Place		place = cfd_tokens_place(statement);
	ListCell   *cell;

	/*
	 * A scan on which a cursor is positioned stays unchanged, so that it can
	 * scroll backward.
	 */
	if ((options & cursor) == 0)
		statement->planTree = cfd_tokens_subplans(&place, false);
	cfd_tokens_plan_replace(&place, statement->planTree, (options & cursor) != 0);
	/* Subplans may be read for a single row only. */
	foreach(cell, statement->subplans)
		cfd_tokens_plan_replace(&place, lfirst(cell), true);
}

void
cfd_tokens_init(void)
{
	DefineCustomBoolVariable("confide.enable_hash_tokens",
							 "Hash joins and hash aggregations by protected keys get these hashed by the batch.",
							 NULL,
							 &cfd_enable_hash_tokens,
							 true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	RegisterCustomScanMethods(&cfd_tokens_methods);
}
