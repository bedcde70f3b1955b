/*
 * wanted.h
 *	  What a query wants grouped and aggregated, and whether the keeper can do that.
 *
 * The node is offered if all keys, aggregates and conditions can be done exactly; else nothing is.
 *
 * Invariant: what is taken here gives what PostgreSQL would give over the same rows.
 */
#ifndef CFD_NODE_AGGREGATE_WANTED_H
#define CFD_NODE_AGGREGATE_WANTED_H

#include "postgres.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "program/compile.h"

/* What is to be grouped and aggregated. */
typedef struct CfdWanted
{
	PlannerInfo *root;
	List	   *keys;			/* expressions */
	List	   *aggrefs;
	List	   *having;			/* in the keeper */
	bool		protected;		/* something of it is */
	bool		careful;		/* arguments may be evaluated although a row is left out */
	bool		filtered;		/* by protected quals of the scan below */
	bool		in_one_pass;	/* or not at all */
	bool		impossible;
} CfdWanted;

/* wanted.c */
/* Number of an aggregate of the keeper's; 0 for count, -1 for any other. */
extern int cfd_aggregate_number(const Aggref *aggref);
/*
 * The condition of sum(CASE WHEN condition THEN 1 ELSE 0 END), which counts the rows
 * that it holds for, if there are rows; NULL for any other aggregate.
 */
extern Expr *cfd_aggregate_counted_condition(const Aggref *aggref, bool grouped);
/* Collects what stands in the target list and in HAVING. */
extern bool cfd_aggregate_collect(Node *node, CfdWanted *wanted);
/* Keys of GROUP BY or DISTINCT. */
extern bool cfd_aggregate_collect_keys(PlannerInfo *root, List *clauses, CfdWanted *wanted);
/* Inputs that are there anyway, whether a row is left out or not. */
extern bool cfd_aggregate_inputs_are_columns(CfdCompiler *compiler, Node *expr);
extern bool cfd_aggregate_arguments_are_columns(CfdWanted *wanted);
extern bool cfd_aggregate_keys_are_columns(CfdWanted *wanted);

/* path.c */
/* A qual that the keeper evaluates, of columns only. */
extern bool cfd_aggregate_is_filter(Node *qual);

/* plan.c */
extern Plan *cfd_aggregate_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
								List *clauses, List *children);

#endif
