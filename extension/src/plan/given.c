/*
 * given.c
 *	  What a finished plan returns to a new node above it; see given.h.
 *
 * Invariant: as in given.h.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "plan/given.h"

static bool
cfd_given_is(const Node *node, const CfdGiven *given)
{
	return IsA(node, Var) || (IsA(node, SubPlan) && ((const SubPlan *) node)->plan_id == given->own);
}

bool
cfd_given_collect(Node *node, void *context)
{
	CfdGiven   *given = context;

	if (node == NULL)
		return false;
	if (!cfd_given_is(node, given))
		return expression_tree_walker(node, cfd_given_collect, context);
	given->given = list_append_unique(given->given, node);
	return false;
}

Node *
cfd_given_renamed(Node *node, void *context)
{
	const CfdGiven *given = context;
	ListCell   *cell;

	if (node == NULL)
		return NULL;
	if (!cfd_given_is(node, given))
		return expression_tree_mutator(node, cfd_given_renamed, context);
	foreach(cell, given->given)
	{
		if (equal(lfirst(cell), node))
			return (Node *) makeVar(given->varno, foreach_current_index(cell) + 1, exprType(node), exprTypmod(node),
									exprCollation(node), 0);
	}
	elog(ERROR, "confide: a plan's column was not collected");
}

List *
cfd_given_targets(const CfdGiven *given)
{
	List	   *targets = NIL;
	ListCell   *cell;

	foreach(cell, given->given)
		targets = lappend(targets, makeTargetEntry(copyObject(lfirst(cell)), foreach_current_index(cell) + 1, NULL, false));
	return targets;
}
