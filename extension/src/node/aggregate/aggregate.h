/*
 * aggregate.h
 *	  A plan node that groups and aggregates in the keeper: what its planning
 *	  (plan.c) hands to its execution (execute.c).
 *
 * Under a parallel plan there are two: each worker has a partial one, which hands its groups over
 * in the keeper and gives PostgreSQL a row with their number; the final one, above Gather, has
 * them merged and gives the groups (partial.c).
 *
 * Group keys are protected values, or plain ones that are equal exactly if their
 * eight bytes are. Aggregates are those of protected types, and count.
 *
 * Invariant: the node gives what PostgreSQL's Agg would give over the same rows.
 */
#ifndef CFD_NODE_AGGREGATE_AGGREGATE_H
#define CFD_NODE_AGGREGATE_AGGREGATE_H

#include "postgres.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

/*
 * Members of custom_private. Expressions are over the child's output (OUTER_VAR);
 * those of "having" are over the node's own: keys, then aggregates (INDEX_VAR).
 */
enum
{
	CFD_AGG_KEYS,				/* expressions */
	CFD_AGG_CALLS,				/* lists of four: number, distinct, argument, filter */
	CFD_AGG_QUALS,				/* the child's quals, evaluated in the keeper */
	CFD_AGG_HAVING,				/* quals on groups, evaluated in the keeper */
	CFD_AGG_STAGE,				/* a CfdAggregateStage */
	CFD_AGG_SHARE,				/* how many aggregations share the memory */
	CFD_AGG_MEMBERS
};

typedef enum CfdAggregateStage
{
	CFD_AGG_WHOLE,
	CFD_AGG_PARTIAL,			/* a worker's */
	CFD_AGG_FINAL				/* the leader's, of what workers have made */
} CfdAggregateStage;

extern bool cfd_enable_batch_aggregate;
extern bool cfd_enable_partial_aggregate;
extern int	cfd_aggregate_memory;

/* plan.c */
extern void cfd_aggregate_init(void);
/* Adds paths for the groups that a query makes of its input's rows. */
extern void cfd_aggregate_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input, RelOptInfo *output,
								void *extra);
/* Whether the type's values are equal exactly if their Datums are. */
extern bool cfd_is_raw_type(Oid type);
/* execute.c */
extern Node *cfd_aggregate_create_state(CustomScan *plan);
extern Node *cfd_partial_create_state(CustomScan *plan);

#endif
