/*
 * shared.c
 *	  Values shared by the processes of a parallel query; see shared.h.
 *
 * PostgreSQL has no hook between plan nodes, but each node has a pointer to
 * the function that returns its rows. We replace it by a function that calls
 * the original one.
 *
 * Invariant: as in shared.h.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "executor/nodeSubplan.h"
#include "hooks/shared.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "session/channel.h"
#include "value/types.h"

/* A plan node whose function we have replaced. */
typedef struct Called
{
	PlanState  *node;
	ExecProcNodeMtd function;	/* the original function */
	struct Called *next;
	MemoryContextCallback callback;
} Called;

static Called *all_called = NULL;

static void
forget(void *called)
{
	for (Called **at = &all_called; *at != NULL; at = &(*at)->next)
	{
		if (*at == called)
		{
			*at = (*at)->next;
			return;
		}
	}
}

static Called *
called_by_us(PlanState *node)
{
	Called	   *called = all_called;

	while (called != NULL && called->node != node)
		called = called->next;
	return called;
}

/*
 * Replaces the function of a node for the lifetime of its query. A subplan
 * that several nodes share is visited several times; the later visits do
 * nothing.
 */
static void
call_by(PlanState *node, ExecProcNodeMtd function)
{
	MemoryContext context = node->state->es_query_cxt;
	Called	   *called;

	if (called_by_us(node) != NULL)
		return;
	called = MemoryContextAllocZero(context, sizeof(Called));
	called->node = node;
	called->function = node->ExecProcNodeReal;
	called->callback.func = forget;
	called->callback.arg = called;
	MemoryContextRegisterResetCallback(context, &called->callback);
	called->next = all_called;
	all_called = called;
	ExecSetExecProcNode(node, function);
}

/* Calls the node's original function. Few nodes are wrapped, so the list is short. */
static TupleTableSlot *
call(PlanState *node)
{
	Called	   *called = called_by_us(node);

	if (called == NULL)
		elog(ERROR, "plan node is not known");
	return called->function(node);
}

/* ---------- parameters ---------- */

/*
 * Evaluates all parameters that workers are about to receive, and waits until
 * the keeper has computed them.
 */
static void
before_launch(PlanState *node, Bitmapset *params, bool launched)
{
	if (launched)
		return;
	ExecSetParamPlanMulti(params, GetPerTupleExprContext(node->state));
	cfd_fence_outstanding();
}

static TupleTableSlot *
gather(PlanState *node)
{
	before_launch(node, ((Gather *) node->plan)->initParam, ((GatherState *) node)->initialized);
	return call(node);
}

static TupleTableSlot *
gather_merge(PlanState *node)
{
	before_launch(node, ((GatherMerge *) node->plan)->initParam, ((GatherMergeState *) node)->initialized);
	return call(node);
}

/* ---------- hash tables ---------- */

/*
 * Other processes read what this one has stored in the hash table or file only
 * after all of them have reached the end of their rows.
 */
static TupleTableSlot *
to_its_end(PlanState *node)
{
	TupleTableSlot *slot = call(node);

	if (TupIsNull(slot))
		cfd_fence_outstanding();
	return slot;
}

static void
stop_fencing(void *unused)
{
	cfd_fenced_plans--;
}

static void
fence_each_operation(EState *state)
{
	MemoryContextCallback *callback = MemoryContextAllocZero(state->es_query_cxt, sizeof(*callback));

	callback->func = stop_fencing;
	MemoryContextRegisterResetCallback(state->es_query_cxt, callback);
	cfd_fenced_plans++;
}

/*
 * A parallel-aware hash join is assigned its function when workers are
 * launched, so we cannot wrap it. If it computes no values, that is not
 * necessary, because its inputs reach their ends before it does.
 */
static void
fence_at_end(PlanState *node)
{
	const bool	late = IsA(node, HashJoinState) && node->plan->parallel_aware;
	bool		computes = false;
	bool		protected = false;
	ListCell   *cell;

	foreach(cell, node->plan->targetlist)
	{
		Node	   *expr = (Node *) lfirst_node(TargetEntry, cell)->expr;

		if (cfd_type_code(exprType(expr)) == 0)
			continue;
		protected = true;
		computes |= !IsA(expr, Var);
	}
	if (late && computes)
		fence_each_operation(node->state);
	else if (protected && !late)
		call_by(node, to_its_end);
}

static bool
look_at(PlanState *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, GatherState))
		call_by(node, gather);
	else if (IsA(node, GatherMergeState))
		call_by(node, gather_merge);
	else if (IsA(node, HashJoinState) && node->plan->parallel_aware)
	{
		fence_at_end(outerPlanState(node));
		fence_at_end(outerPlanState(innerPlanState(node)));
	}
	return planstate_tree_walker(node, look_at, context);
}

void
cfd_shared_values(QueryDesc *query)
{
	if ((query->plannedstmt->parallelModeNeeded || IsParallelWorker()) && OidIsValid(cfd_access_method()))
		look_at(query->planstate, NULL);
}
