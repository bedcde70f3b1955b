/*
 * hash_keys.c
 *	  Choice of the keys that a hash join hashes; see hash_keys.h.
 *
 * A clause that is removed from a path's hash clauses remains a join clause,
 * which PostgreSQL evaluates for the pairs found.
 *
 * Invariant: as in hash_keys.h.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "plan/hash_keys.h"
#include "value/types.h"

static bool
is_protected(const RestrictInfo *info)
{
	return cfd_type_code(exprType(linitial(((OpExpr *) info->clause)->args))) != 0;
}

/* The unprotected keys. Returns NIL if no key is protected or all are. */
static List *
plain_keys(List *keys)
{
	List	   *plain = NIL;
	ListCell   *cell;

	foreach(cell, keys)
	{
		if (!is_protected(lfirst_node(RestrictInfo, cell)))
			plain = lappend(plain, lfirst(cell));
	}
	return list_length(plain) < list_length(keys) ? plain : NIL;
}

static void
choose_keys(PlannerInfo *root, HashPath *path, SpecialJoinInfo *join)
{
	List	   *plain = plain_keys(path->path_hashclauses);
	double		outer = path->jpath.outerjoinpath->rows;
	double		inner = path->jpath.innerjoinpath->rows;

	if (plain != NIL &&
		outer * inner * clauselist_selectivity(root, plain, 0, JOIN_INNER, join) < outer + inner)
		path->path_hashclauses = plain;
}

static void
choose_all(PlannerInfo *root, List *paths, SpecialJoinInfo *join)
{
	ListCell   *cell;

	foreach(cell, paths)
	{
		if (IsA(lfirst(cell), HashPath))
			choose_keys(root, lfirst(cell), join);
	}
}

void
cfd_hash_keys_choose(PlannerInfo *root, RelOptInfo *joined, RelOptInfo *outer, RelOptInfo *inner,
					 JoinType type, JoinPathExtraData *extra)
{
	choose_all(root, joined->pathlist, extra->sjinfo);
	choose_all(root, joined->partial_pathlist, extra->sjinfo);
}
