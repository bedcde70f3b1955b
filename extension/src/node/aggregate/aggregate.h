/*
 * aggregate.h
 *	  Plan node ConfideAggregate, which groups and aggregates in the
 *	  keeper: the interface between planning (plan.c) and execution
 *	  (execute.c).
 *
 * A parallel plan has two such nodes. Each worker has a partial one, which
 * leaves its groups in the keeper and returns a single row with their number.
 * The final one, above the Gather, has the keeper merge these groups and
 * returns them (partial.c).
 *
 * Group keys are protected values, or plain values that are equal exactly if
 * their eight bytes are. The aggregates are those of protected types, and
 * count.
 *
 * Invariant: the node returns what PostgreSQL's Agg would return for the same
 * rows.
 */
#ifndef CFD_NODE_AGGREGATE_AGGREGATE_H
#define CFD_NODE_AGGREGATE_AGGREGATE_H

#include "postgres.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/*
 * Members of custom_private. Expressions refer to the child's output
 * (OUTER_VAR); those of CFD_AGG_HAVING refer to the node's own output
 * (INDEX_VAR), keys first, then aggregates.
 */
enum
{
	CFD_AGG_KEYS,				/* expressions */
	CFD_AGG_CALLS,				/* lists of four: number, distinct, argument, filter */
	CFD_AGG_QUALS,				/* quals of the child, evaluated in the keeper */
	CFD_AGG_HAVING,				/* quals on groups, evaluated in the keeper */
	CFD_AGG_STAGE,				/* a CfdAggregateStage */
	CFD_AGG_SHARE,				/* number of aggregations that share the memory */
	CFD_AGG_KEPT,				/* whether the keeper keeps the results, which may be NULL, untold */
	CFD_AGG_MEMBERS
};

typedef enum CfdAggregateStage
{
	CFD_AGG_WHOLE,
	CFD_AGG_PARTIAL,			/* in a worker */
	CFD_AGG_FINAL				/* in the leader, over the workers' results */
} CfdAggregateStage;

extern bool cfd_enable_batch_aggregate;
extern bool cfd_enable_partial_aggregate;
extern int	cfd_aggregate_memory;

/* plan.c */
extern void cfd_aggregate_init(void);
/* Adds paths that group the rows of the input relation. */
extern void cfd_aggregate_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input, RelOptInfo *output,
								void *extra);
/* Whether values of the type are equal exactly if their Datums are. */
extern bool cfd_is_raw_type(Oid type);
/* Whether a finished plan is such a node, or the workers' part of it. */
extern bool cfd_is_aggregate(const Plan *plan);
/*
 * Whether the plan's only result is made by an aggregation in the keeper, and by nothing that must know whether it is
 * NULL.
 */
extern bool cfd_aggregate_can_keep(const Plan *plan);
/*
 * Has the keeper keep the result: the plan returns a FID that may stand for
 * NULL. Only for what passes it on to the keeper.
 */
extern void cfd_aggregate_keep(Plan *plan);
/* execute.c */
extern Node *cfd_aggregate_create_state(CustomScan *plan);
extern Node *cfd_partial_create_state(CustomScan *plan);

#endif
