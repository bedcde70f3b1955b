/*
 * hash_keys.h
 *	  Choice of the keys that a hash join hashes.
 *
 * A protected key must be hashed by the keeper for each row of both sides. If
 * the other keys leave few pairs, only those are hashed, and the protected
 * keys of the remaining pairs are compared.
 *
 * Invariants: the result of the join does not change; nothing is declassified
 * that a join by comparison would not declassify.
 */
#ifndef CFD_PLAN_HASH_KEYS_H
#define CFD_PLAN_HASH_KEYS_H

#include "postgres.h"
#include "nodes/pathnodes.h"

/* Chooses the hash keys of a join's paths. */
extern void cfd_hash_keys_choose(PlannerInfo *root, RelOptInfo *joined, RelOptInfo *outer, RelOptInfo *inner,
								 JoinType type, JoinPathExtraData *extra);

#endif
