/*
 * tokens.h
 *	  A plan node that adds a column to its child's rows: the token of their protected keys,
 *	  by which PostgreSQL's own hash join, hash aggregation or hashed subplan works then.
 *
 * plan.c puts it into finished plans, subplans.c for hashed subplans, cost.c offers the joins that
 * it makes cheap, node.c executes it. A token is a plain value of 16 bytes, of the type uuid; tokens come by the batch.
 *
 * Invariants: within one execution of the join, aggregation or subplan, tokens are equal if the keys
 * are, and else only by a chance that can be neglected; those of two executions do not compare. Of a join's rows the keeper is asked for
 * no more than twice as many as are wanted, where the query may end early.
 */
#ifndef CFD_NODE_TOKENS_TOKENS_H
#define CFD_NODE_TOKENS_TOKENS_H

#include "postgres.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/* Members of custom_private. */
typedef enum CfdTokensPart
{
	CFD_TOKENS_KEYS = 0,		/* expressions over the child's columns (INDEX_VAR) */
	CFD_TOKENS_NUMBER,			/* parameter that the nodes of a join have in common, or -1 */
	CFD_TOKENS_NULLS_EQUAL,		/* whether NULL equals NULL */
	CFD_TOKENS_READING,			/* CfdTokensReading */
	CFD_TOKENS_SUBPLAN,			/* of the node itself, that the token is looked up in; or 0 */
	CFD_TOKENS_PARTS
} CfdTokensPart;

/* How many rows are wanted. */
typedef enum CfdTokensReading
{
	CFD_TOKENS_ALL,				/* all of them, whatever comes */
	CFD_TOKENS_MOST,			/* all, if there is anything to join them with */
	CFD_TOKENS_SOME				/* the query may end early */
} CfdTokensReading;

/* A plan that is being looked through. */
typedef struct CfdTokensPlace
{
	PlannedStmt *statement;
	int			last_id;		/* largest plan_node_id */
} CfdTokensPlace;

/* uuid = uuid */
#define CFD_TOKEN_EQUALITY 2972

/* confide.enable_hash_tokens */
extern bool cfd_enable_hash_tokens;

/* plan.c */
extern void cfd_tokens_init(void);
/* Whether a query is to be looked through, once it is planned; then does so. */
extern bool cfd_tokens_wanted(Query *query);
extern void cfd_tokens_pass(PlannedStmt *statement, int options);
/* Whether tokens can stand for the values of this equality's operands. */
extern bool cfd_has_tokens(Oid equality, Node *left, Node *right);
/* A parameter that nodes whose tokens shall compare have in common. */
extern int	cfd_tokens_number(CfdTokensPlace *place);
/* A node above a child, with the token of keys over the child's columns (OUTER_VAR). */
extern Plan *cfd_tokens_node(CfdTokensPlace *place, Plan *child, List *keys, int number, bool nulls_equal,
							 CfdTokensReading reading);
/* Whether it makes a difference that a plan is read further than its rows are wanted. */
extern bool cfd_has_effects(Plan *plan);
/* Whether rows of a plan's outer or inner child may be left unread, if those of the plan may. */
extern bool cfd_ends_early(const Plan *plan, bool inner, bool early);
/* Plans below a plan that are not its outer and inner one; NIL if there are none. */
extern List *cfd_other_children(Plan *plan);
/* subplans.c: gives the plan that takes the statement's place. */
extern Plan *cfd_tokens_subplans(CfdTokensPlace *place, bool early);
/* cost.c */
extern void cfd_tokens_join_paths(PlannerInfo *root, RelOptInfo *joined, RelOptInfo *outer, RelOptInfo *inner,
								  JoinType type, JoinPathExtraData *extra);
extern Cost cfd_token_cost(double rows, int keys);
/* node.c */
extern const CustomScanMethods cfd_tokens_methods;

#endif
