/*
 * aggregate.h
 *	  A plan node that groups and aggregates in the keeper: what its planning
 *	  (plan.c) hands to its execution (execute.c).
 *
 * Group keys are protected values, or plain ones that are equal exactly if their
 * eight bytes are. Aggregates are those of protected types, and count.
 *
 * Invariant: the node gives what PostgreSQL's Agg would give over the same rows.
 */
#ifndef CFD_AGGREGATE_H
#define CFD_AGGREGATE_H

#include "postgres.h"
#include "nodes/extensible.h"

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
	CFD_AGG_MEMBERS
};

extern bool cfd_enable_batch_aggregate;
extern int	cfd_aggregate_memory;

/* plan.c */
extern void cfd_aggregate_init(void);
/* Whether the type's values are equal exactly if their Datums are. */
extern bool cfd_is_raw_type(Oid type);
/* execute.c */
extern Node *cfd_aggregate_create_state(CustomScan *plan);

#endif
