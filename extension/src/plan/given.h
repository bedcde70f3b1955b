/*
 * given.h
 *	  What a finished plan returns to a new node above it that takes over the
 *	  plan's target list and some of its quals.
 *
 * The plan then returns columns only: those that the target list and the quals
 * refer to. The caller makes the node.
 *
 * Invariant: target list and quals are the same expressions, over the columns
 * that the plan returns.
 */
#ifndef CFD_PLAN_GIVEN_H
#define CFD_PLAN_GIVEN_H

#include "postgres.h"
#include "nodes/pg_list.h"
#include "nodes/plannodes.h"

typedef struct CfdGiven
{
	List	   *given;			/* columns, and the result of the plan's own subplan */
	int			own;			/* number of a subplan that the plan itself evaluates, or 0 */
	int			varno;			/* how the node refers to them */
} CfdGiven;

/* Adds the columns that an expression refers to. A walker. */
extern bool cfd_given_collect(Node *node, void *given);
/* The expression over the given columns. A mutator. */
extern Node *cfd_given_renamed(Node *node, void *given);
/* A target list of the given columns. */
extern List *cfd_given_targets(const CfdGiven *given);

#endif
