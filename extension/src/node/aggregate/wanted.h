/*
 * wanted.h
 *	  What a query groups and aggregates, and whether the keeper can do it.
 *
 * The node is offered only if all keys, aggregates and conditions can be
 * computed exactly.
 *
 * Invariant: whatever is accepted here yields what PostgreSQL would return for
 * the same rows.
 */
#ifndef CFD_NODE_AGGREGATE_WANTED_H
#define CFD_NODE_AGGREGATE_WANTED_H

#include "postgres.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "program/compile.h"

/* Keys, aggregates and conditions of a query. */
typedef struct CfdWanted
{
	PlannerInfo *root;
	List	   *keys;			/* expressions */
	List	   *aggrefs;
	List	   *having;			/* quals evaluated in the keeper */
	bool		protected;		/* something in it is protected */
	bool		careful;		/* arguments may be evaluated for rows that are filtered out */
	bool		filtered;		/* by protected quals of the scan below */
	bool		in_one_pass;	/* must be done in one pass */
	bool		impossible;
} CfdWanted;

/* wanted.c */
/* The keeper's number of an aggregate; 0 for count, -1 if it has none. */
extern int cfd_aggregate_number(const Aggref *aggref);
/*
 * If the aggregate is sum(CASE WHEN condition THEN 1 ELSE 0 END), which counts
 * the rows that satisfy the condition, returns that condition; otherwise NULL.
 */
extern Expr *cfd_aggregate_counted_condition(const Aggref *aggref, bool grouped);
/* Tree walker that collects the aggregates of the target list and HAVING. */
extern bool cfd_aggregate_collect(Node *node, CfdWanted *wanted);
/* Collects the keys of GROUP BY or DISTINCT. */
extern bool cfd_aggregate_collect_keys(PlannerInfo *root, List *clauses, CfdWanted *wanted);
/*
 * Whether all inputs are plain columns, which can be read even for rows that
 * are filtered out.
 */
extern bool cfd_aggregate_inputs_are_columns(CfdCompiler *compiler, Node *expr);
extern bool cfd_aggregate_arguments_are_columns(CfdWanted *wanted);
extern bool cfd_aggregate_keys_are_columns(CfdWanted *wanted);

/* path.c */
/* Whether the qual can be evaluated by the keeper and refers to columns only. */
extern bool cfd_aggregate_is_filter(Node *qual);

/* plan.c */
extern Plan *cfd_aggregate_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
								List *clauses, List *children);

#endif
