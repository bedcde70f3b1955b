/*
 * hash_keys.h
 *	  Which keys a hash join hashes.
 *
 * A protected key is hashed by the keeper, for each row of both sides. Where other keys
 * leave few pairs, these are hashed only, and the pairs that they leave are compared.
 *
 * Invariants: the join's result is the same; nothing is declassified that a join by
 * comparison would not declassify.
 */
#ifndef CFD_PLAN_HASH_KEYS_H
#define CFD_PLAN_HASH_KEYS_H

#include "postgres.h"
#include "nodes/pathnodes.h"

/* Chooses the keys of a join's paths. */
extern void cfd_hash_keys_choose(PlannerInfo *root, RelOptInfo *joined, RelOptInfo *outer, RelOptInfo *inner,
								 JoinType type, JoinPathExtraData *extra);

#endif
