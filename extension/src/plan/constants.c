/*
 * constants.c
 *	  Finds the expressions of indexes in a query; see constants.h.
 *
 * Invariant: as in constants.h.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/tlist.h"
#include "plan/constants.h"
#include "session/channel.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
#include "value/types.h"

/* An expression without the values of its protected constants, and these values in order. */
typedef struct Shape
{
	Node	   *node;
	List	   *constants;
} Shape;

typedef struct Sought
{
	Shape		shape;
	Node	   *found;
} Sought;

static bool
is_sealed_constant(const Node *node)
{
	return IsA(node, Const) && !((const Const *) node)->constisnull &&
		cfd_type_code(((const Const *) node)->consttype) != 0;
}

static Node *
without_constants(Node *node, List **constants)
{
	Const	   *blank;

	if (node == NULL)
		return NULL;
	if (!is_sealed_constant(node))
		return expression_tree_mutator(node, without_constants, constants);
	*constants = lappend(*constants, node);
	blank = copyObject((Const *) node);
	blank->constvalue = UInt64GetDatum(0);
	return (Node *) blank;
}

static Shape
constants_shape(Node *expression)
{
	Shape		shape = {.constants = NIL};

	shape.node = without_constants(expression, &shape.constants);
	return shape;
}

static bool
has_equal_value(const Const *a, const Const *b)
{
	TypeCacheEntry *entry;

	if (a->constvalue == b->constvalue)
		return true;
	entry = lookup_type_cache(a->consttype, TYPECACHE_EQ_OPR_FINFO);
	return OidIsValid(entry->eq_opr_finfo.fn_oid) &&
		DatumGetBool(FunctionCall2Coll(&entry->eq_opr_finfo, InvalidOid, a->constvalue, b->constvalue));
}

static bool
means_the_same(const Shape *a, const Shape *b)
{
	ListCell   *one;
	ListCell   *other;

	if (list_length(a->constants) != list_length(b->constants) || !equal(a->node, b->node))
		return false;
	forboth(one, a->constants, other, b->constants)
	{
		if (!has_equal_value(lfirst(one), lfirst(other)))
			return false;
	}
	return true;
}

static bool
seek(Node *node, void *context)
{
	Sought	   *sought = context;

	if (node == NULL)
		return false;
	if (nodeTag(node) == nodeTag(sought->shape.node))
	{
		Shape		shape = constants_shape(node);

		if (means_the_same(&sought->shape, &shape))
		{
			sought->found = node;
			return true;
		}
	}
	return expression_tree_walker(node, seek, context);
}

/* The expression of a query that means the same as one of an index, or NULL. */
static Node *
in_query(PlannerInfo *root, Node *expression)
{
	Sought		sought = {.shape = constants_shape(expression)};

	if (sought.shape.constants == NIL)
		return NULL;
	if (!seek((Node *) root->parse->jointree, &sought))
		seek((Node *) root->parse->targetList, &sought);
	return sought.found;
}

/* Puts an expression in the place of another one, also in what an index-only scan returns. */
static void
replace(IndexOptInfo *index, ListCell *place, Node *by)
{
	Node	   *before = lfirst(place);
	ListCell   *cell;

	foreach(cell, index->indextlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);

		if (equal(entry->expr, before))
			entry->expr = copyObject((Expr *) by);
	}
	lfirst(place) = copyObject(by);
}

void
cfd_match_constants(PlannerInfo *root, RelOptInfo *rel)
{
	ListCell   *cell;
	ListCell   *place;

	if (!cfd_channel.had_client)
		return;
	foreach(cell, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, cell);

		foreach(place, index->indexprs)
		{
			Node	   *same = in_query(root, lfirst(place));

			if (same != NULL)
				replace(index, place, same);
		}
	}
}
