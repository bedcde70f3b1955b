/*
 * pairs.c
 *	  The pairs of a semijoin or antijoin; see pairs.h.
 *
 * Invariant: as in pairs.h. As in PostgreSQL's nested loop, nl_NeedNewOuter is
 * set unless a batch was cut, and by a rescan.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "node/scan/pairs.h"

NestLoopState *
cfd_pairs_begin(PlanState *child)
{
	NestLoopState *loop = (NestLoopState *) child;

	if (!IsA(child, NestLoopState) || (loop->js.jointype != JOIN_SEMI && loop->js.jointype != JOIN_ANTI))
		return NULL;
	if (loop->nl_NullInnerTupleSlot == NULL)
		loop->nl_NullInnerTupleSlot = ExecInitNullTupleSlot(child->state, ExecGetResultType(innerPlanState(child)),
															&TTSOpsVirtual);
	return loop;
}

/* Reads the next outer row and sets the parameters of the inner side. */
static bool
next_outer(NestLoopState *loop)
{
	ExprContext *context = loop->js.ps.ps_ExprContext;
	PlanState  *inner = innerPlanState(loop);
	TupleTableSlot *row = ExecProcNode(outerPlanState(loop));
	ListCell   *cell;

	if (TupIsNull(row))
		return false;
	context->ecxt_outertuple = row;
	foreach(cell, ((NestLoop *) loop->js.ps.plan)->nestParams)
	{
		NestLoopParam *param = lfirst(cell);
		ParamExecData *place = &context->ecxt_param_exec_vals[param->paramno];

		place->value = slot_getattr(row, param->paramval->varattno, &place->isnull);
		inner->chgParam = bms_add_member(inner->chgParam, param->paramno);
	}
	ExecReScan(inner);
	return true;
}

/* Adds the row without inner columns, which is what the join returns. */
static void
cfd_pairs_add_row(NestLoopState *loop, CfdBuffer *buffer)
{
	ExprContext *context = loop->js.ps.ps_ExprContext;

	ResetExprContext(context);
	context->ecxt_innertuple = loop->nl_NullInnerTupleSlot;
	cfd_buffer_add(buffer, ExecProject(loop->js.ps.ps_ProjInfo));
}

/* Adds pairs of the row. Returns false if there are more. */
static bool
add_pairs(NestLoopState *loop, CfdBuffer *buffer, ExprContext *inputs_context, int most)
{
	ExprContext *context = loop->js.ps.ps_ExprContext;

	while (buffer->pairs < most && cfd_inputs_bytes(buffer->quals) <= CFD_CELLS_BYTES)
	{
		TupleTableSlot *inner = ExecProcNode(innerPlanState(loop));
		TupleTableSlot *pair;

		if (TupIsNull(inner))
			return true;
		ResetExprContext(context);
		context->ecxt_innertuple = inner;
		if (loop->js.joinqual != NULL && !ExecQual(loop->js.joinqual, context))
		{
			InstrCountFiltered1(&loop->js, 1);
			continue;
		}
		pair = ExecProject(loop->js.ps.ps_ProjInfo);
		if (buffer->quals->evaluates)
			ResetExprContext(inputs_context);
		inputs_context->ecxt_scantuple = pair;
		cfd_inputs_row(buffer->quals, pair, inputs_context, buffer->pairs++);
	}
	return false;
}

static bool
cfd_pairs_read_rows(NestLoopState *loop, CfdBuffer *buffer, ExprContext *context, int most)
{
	/* Leave room for a row with few pairs, so that most batches are not cut. */
	int			full = most - most / 8;

	while (buffer->rows < most && buffer->pairs < full && !cfd_buffer_is_full(buffer))
	{
		if (loop->nl_NeedNewOuter && !next_outer(loop))
			return false;
		cfd_pairs_add_row(loop, buffer);
		loop->nl_NeedNewOuter = add_pairs(loop, buffer, context, most);
		buffer->ends[buffer->rows - 1] = buffer->pairs;
	}
	buffer->cut = !loop->nl_NeedNewOuter;
	return true;
}

bool
cfd_pairs_read(NestLoopState *loop, CfdBuffer *buffer, ExprContext *context, int most)
{
	Instrumentation *instrument = loop->js.ps.instrument;
	bool		more;

	if (loop->js.ps.chgParam != NULL)
		ExecReScan(&loop->js.ps);
	if (instrument != NULL)
		InstrStartNode(instrument);
	more = cfd_pairs_read_rows(loop, buffer, context, most);
	if (instrument != NULL)
		InstrStopNode(instrument, buffer->pairs);
	return more;
}

void
cfd_pairs_leave_row(NestLoopState *loop)
{
	loop->nl_NeedNewOuter = true;
}
