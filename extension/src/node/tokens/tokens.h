/*
 * tokens.h
 *	  Plan node ConfideTokens, which adds to its child's rows a column with
 *	  the token of their protected keys. PostgreSQL's own hash join, hash
 *	  aggregate or hashed subplan then hashes the token instead.
 *
 * plan.c inserts the node into finished plans, subplans.c does so for hashed
 * subplans, cost.c adds the join paths that tokens make cheap, and node.c
 * executes the node. A token is a plain 16-byte value of type uuid. Tokens are
 * computed in batches.
 *
 * Invariants: within one execution of the join, aggregate or subplan, tokens
 * of equal keys are equal, and tokens of different keys differ except with
 * negligible probability; tokens of different executions cannot be compared;
 * where a query may end early, the keeper is asked about at most twice as many
 * of a join's rows as are wanted.
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
	CFD_TOKENS_NUMBER,			/* parameter shared by the nodes of a join, or -1 */
	CFD_TOKENS_NULLS_EQUAL,		/* whether NULL equals NULL */
	CFD_TOKENS_READING,			/* CfdTokensReading */
	CFD_TOKENS_SUBPLAN,			/* the node's own subplan in which the token is looked up, or 0 */
	CFD_TOKENS_PARTS
} CfdTokensPart;

/* How many rows will be read. */
typedef enum CfdTokensReading
{
	CFD_TOKENS_ALL,				/* all of them in any case */
	CFD_TOKENS_MOST,			/* all of them, unless the other side is empty */
	CFD_TOKENS_SOME				/* possibly fewer: the query may end early */
} CfdTokensReading;

/* A plan that is being transformed. */
typedef struct CfdTokensPlace
{
	PlannedStmt *statement;
	int			last_id;		/* largest plan_node_id so far */
} CfdTokensPlace;

/* Operator uuid = uuid. */
#define CFD_TOKEN_EQUALITY 2972

/* Setting confide.enable_hash_tokens. */
extern bool cfd_enable_hash_tokens;

/* plan.c */
extern void cfd_tokens_init(void);
/* Whether a query needs this pass after planning, and the pass itself. */
extern bool cfd_tokens_wanted(Query *query);
extern void cfd_tokens_pass(PlannedStmt *statement, int options);
/* Whether tokens can represent the operands of this equality operator. */
extern bool cfd_has_tokens(Oid equality, Node *left, Node *right);
/* Allocates a parameter for nodes whose tokens must be comparable. */
extern int	cfd_tokens_number(CfdTokensPlace *place);
/* Makes a node above a child. The keys refer to the child's columns (OUTER_VAR). */
extern Plan *cfd_tokens_node(CfdTokensPlace *place, Plan *child, List *keys, int number, bool nulls_equal,
							 CfdTokensReading reading);
/* Whether reading more of the plan than its consumer wants could be noticed. */
extern bool cfd_has_effects(Plan *plan);
/*
 * Whether rows of a plan's outer or inner child may be left unread, given that
 * those of the plan may be (early).
 */
extern bool cfd_ends_early(const Plan *plan, bool inner, bool early);
/* Child plans other than the outer and inner one; NIL if there are none. */
extern List *cfd_other_children(Plan *plan);
/* For the numbers of new nodes: what the statement has. */
extern CfdTokensPlace cfd_tokens_place(PlannedStmt *statement);
/* subplans.c */
/* Returns the plan that replaces the statement's plan. */
extern Plan *cfd_tokens_subplans(CfdTokensPlace *place, bool early);
/*
 * Whether the plan's expressions refer only to the rows it reads, so that a
 * node above can take them over.
 */
extern bool cfd_can_give_up(const Plan *plan);
/* Gives new numbers to the nodes of a copied plan. */
extern void cfd_tokens_renumber(CfdTokensPlace *place, Plan *plan);
/* cost.c */
extern void cfd_tokens_join_paths(PlannerInfo *root, RelOptInfo *joined, RelOptInfo *outer, RelOptInfo *inner,
								  JoinType type, JoinPathExtraData *extra);
extern Cost cfd_token_cost(double rows, int keys);
/* node.c */
extern const CustomScanMethods cfd_tokens_methods;

#endif
