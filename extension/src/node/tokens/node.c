/*
 * node.c
 *	  Executes the node that adds tokens: see tokens.h.
 *
 * Two buffers take turns: while the keeper makes the tokens of one, the other is filled, and
 * where all rows will be wanted, it is asked about in advance, too. An error of a row comes
 * with the answer and is raised when its turn comes.
 *
 * Invariant: as of tokens.h.
 */
#include "postgres.h"

#include "wire/columns.h"
#include "session/error.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "batch/buffer.h"
#include "node/tokens/tokens.h"
#include "value/types.h"
#include "utils/ruleutils.h"

/* Bytes of an answer beside the tokens: head, and most errors. */
#define ANSWER_BYTES (8 + 512)
/* Smaller batches are not read ahead. */
#define AHEAD_ROWS 512

/* What the tokens of both sides of a join have in common, so that they compare. */
typedef struct Numbered
{
	uint64		number;
	uint32		generation;		/* of the channel; 0: none have been asked for */
} Numbered;

typedef struct CfdTokensState
{
	CustomScanState css;
	CfdCompiler keys;
	Numbered   *numbered;
	bool		nulls_equal;
	CfdTokensReading reading;
	const SubPlanState *subplan;	/* that tokens are looked up in; or NULL */
	CfdBuffer	buffers[2];
	const char *tokens;			/* of the current buffer; NULL: nobody looks at them */
	int			current;		/* buffer whose rows are given out */
	bool		ahead;			/* the other one is filled */
	bool		ended;			/* the child has no more rows */
	int			batch_rows;		/* of the next batch */
	uint64		scanned;		/* rows of the child since it began anew */
	CfdStored  *stored;			/* rows as they are stored; NULL: from slots only */
	ExprContext *keys_context;
	StringInfoData body;
	/* for EXPLAIN ANALYZE */
	uint64		exchanges;
	uint64		rows;
} CfdTokensState;

static const CustomExecMethods exec_methods;
static uint64 last_number = 0;

/* ---------- beginning ---------- */

static Node *
cfd_tokens_create_state(CustomScan *node)
{
	CfdTokensState *state = (CfdTokensState *) newNode(sizeof(CfdTokensState), T_CustomScanState);

	state->css.flags = node->flags;
	state->css.methods = &exec_methods;
	return (Node *) state;
}

/* A column as it is read: whether text is called varchar makes no difference to its identifier. */
static Expr *
without_label(Expr *key)
{
	while (IsA(key, RelabelType) && cfd_type_code(exprType((Node *) ((RelabelType *) key)->arg)) != 0)
		key = ((RelabelType *) key)->arg;
	return key;
}

static void
cfd_tokens_read_keys(CfdTokensState *state, List *keys)
{
	ListCell   *cell;

	state->keys.inputs = palloc0(list_length(keys) * sizeof(CfdInput));
	state->keys.count = list_length(keys);
	foreach(cell, keys)
	{
		CfdInput   *input = &state->keys.inputs[foreach_current_index(cell)];

		input->expr = without_label(lfirst(cell));
		input->type = cfd_type_code(exprType(lfirst(cell)));
	}
}

/* The first node of a join makes the number, the other finds it. */
static Numbered *
numbered(EState *estate, int param)
{
	ParamExecData *shared = param < 0 ? NULL : &estate->es_param_exec_vals[param];
	Numbered   *numbered;

	if (shared != NULL && shared->value != 0)
		return (Numbered *) DatumGetPointer(shared->value);
	numbered = palloc0(sizeof(Numbered));
	numbered->number = ++last_number;
	if (shared != NULL)
		shared->value = PointerGetDatum(numbered);
	return numbered;
}

static void
cfd_tokens_make_buffers(CfdTokensState *state, TupleDesc rows)
{
	bool	   *kept = palloc(rows->natts);

	memset(kept, true, rows->natts);
	for (int i = 0; i < 2; i++)
	{
		cfd_buffer_init(&state->buffers[i], rows->natts, kept, 0);
		state->buffers[i].quals = cfd_inputs_create(&state->keys, &state->css.ss.ps);
	}
}

/* The subplan of the node's own expressions that has the tokens of its results. */
static const SubPlanState *
find_subplan(const PlanState *node, int plan_id)
{
	ListCell   *cell;

	foreach(cell, node->subPlan)
	{
		const SubPlanState *subplan = lfirst_node(SubPlanState, cell);

		if (subplan->subplan->plan_id == plan_id)
			return subplan;
	}
	return NULL;
}

/* Whether a subplan's results are those that will be looked at; and whether there are any. */
static bool
is_hashed(const SubPlanState *subplan)
{
	return subplan->hashtable != NULL && subplan->planstate->chgParam == NULL;
}

static bool
is_empty(const SubPlanState *subplan)
{
	return is_hashed(subplan) && !subplan->havehashrows && !subplan->havenullrows;
}

/* Rows of the first batch: one row's token tells nothing where it is compared with none. */
static int
first_rows(const CfdTokensState *state)
{
	return state->reading == CFD_TOKENS_ALL ? Min(CFD_BATCH_FIRST_ROWS, cfd_batch_rows) : 1;
}

static void
cfd_tokens_begin(CustomScanState *node, EState *estate, int flags)
{
	CfdTokensState *state = (CfdTokensState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	const int	again = EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK;
	TupleDesc	rows;

	outerPlanState(state) = ExecInitNode(outerPlan(plan), estate, flags & ~again);
	rows = ExecGetResultType(outerPlanState(state));
	cfd_tokens_read_keys(state, list_nth(plan->custom_private, CFD_TOKENS_KEYS));
	state->numbered = numbered(estate, intVal(list_nth(plan->custom_private, CFD_TOKENS_NUMBER)));
	state->nulls_equal = intVal(list_nth(plan->custom_private, CFD_TOKENS_NULLS_EQUAL)) != 0;
	state->reading = intVal(list_nth(plan->custom_private, CFD_TOKENS_READING));
	state->subplan = find_subplan(&node->ss.ps, intVal(list_nth(plan->custom_private, CFD_TOKENS_SUBPLAN)));
	state->keys_context = CreateExprContext(estate);
	cfd_tokens_make_buffers(state, rows);
	if (!state->buffers[0].quals->evaluates)
		state->stored = cfd_stored_create(rows->natts);
	state->batch_rows = first_rows(state);
	initStringInfo(&state->body);
}

/* ---------- a batch ---------- */

static void
cfd_tokens_add_rows(CfdTokensState *state, CfdBuffer *buffer, TupleTableSlot *slot)
{
	ExprContext *context = state->keys_context;

	if (state->stored != NULL &&
		cfd_stored_take(state->stored, outerPlanState(state), slot, state->batch_rows - buffer->rows) > 0)
	{
		cfd_inputs_stored(buffer->quals, state->stored, context, buffer->rows);
		cfd_buffer_add_stored(buffer, state->stored);
		return;
	}
	slot_getallattrs(slot);
	if (buffer->quals->evaluates)
		ResetExprContext(context);
	context->ecxt_scantuple = slot;
	cfd_inputs_row(buffer->quals, slot, context, buffer->rows);
	cfd_buffer_add(buffer, slot);
}

/* Reads a batch from the child. False: no rows. */
static bool
cfd_tokens_read_batch(CfdTokensState *state, CfdBuffer *buffer)
{
	cfd_buffer_empty(buffer);
	cfd_buffer_reserve(buffer, state->batch_rows);
	while (buffer->rows < state->batch_rows && !cfd_buffer_is_full(buffer))
	{
		TupleTableSlot *slot = ExecProcNode(outerPlanState(state));

		state->ended = TupIsNull(slot);
		if (state->ended)
			break;
		cfd_tokens_add_rows(state, buffer, slot);
	}
	state->scanned += buffer->rows;
	state->batch_rows = Min(state->batch_rows * 2, cfd_batch_rows);
	return buffer->rows > 0;
}

/* Tokens of another channel would not compare with those that there are already. */
static void
check_channel(Numbered *numbered)
{
	cfd_begin();
	if (numbered->generation == 0)
		numbered->generation = cfd_channel.generation;
	if (numbered->generation != cfd_channel.generation)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("Confide's keeper has lost the rows to be hashed"),
				 errhint("Try the statement again.")));
}

/* Asks for the tokens of a batch, unless that has been done. */
static void
cfd_tokens_ask(CfdTokensState *state, CfdBuffer *buffer)
{
	unsigned char fixed[CFD_FIXED_TOKENS] = {0};

	if (buffer->asked)
		return;
	check_channel(state->numbered);
	cfd_put64(fixed, state->numbered->number);
	cfd_put32(fixed + 8, buffer->rows);
	cfd_put16(fixed + 12, buffer->quals->count);
	cfd_put16(fixed + 14, state->nulls_equal);
	resetStringInfo(&state->body);
	for (int i = 0; i < buffer->quals->count; i++)
		appendStringInfoChar(&state->body, (char) buffer->quals->columns[i].type);
	cfd_inputs_put(buffer->quals, &state->body, 0, buffer->rows);
	cfd_request(&buffer->filter, CFD_KIND_TOKENS, fixed, sizeof(fixed), state->body.data, state->body.len,
				ANSWER_BYTES + buffer->rows * CFD_TOKEN_BYTES);
	buffer->asked = true;
	state->exchanges++;
}

static void
cfd_tokens_take(CfdTokensState *state, CfdBuffer *buffer)
{
	uint32		length;
	const char *answer = cfd_await(&buffer->filter, &length);
	uint32		good = length < 8 ? 0 : cfd_get32(answer);
	uint32		tokens;

	if (length < 8 || good > buffer->rows || length - 8 < good * CFD_TOKEN_BYTES)
		cfd_violation("tokens of the wrong number of rows");
	tokens = 8 + good * CFD_TOKEN_BYTES;
	if ((good == buffer->rows) != (length == tokens))
		cfd_violation("tokens without an error, or with one too many");
	state->tokens = answer + 8;
	state->rows += good;
	buffer->good = good;
	buffer->next = 0;
	buffer->error = length > tokens ? answer + tokens : NULL;
	buffer->error_length = length - tokens;
}

/* A batch without tokens. */
static void
take_untold(CfdTokensState *state, CfdBuffer *buffer)
{
	state->tokens = NULL;
	buffer->good = buffer->rows;
	buffer->next = 0;
	buffer->error = NULL;
}

/* Makes the next batch the current one. False: there is none. */
static bool
cfd_tokens_turn(CfdTokensState *state)
{
	CfdBuffer  *buffer = &state->buffers[1 - state->current];
	CfdBuffer  *later = &state->buffers[state->current];

	if (!state->ahead && (state->ended || !cfd_tokens_read_batch(state, buffer)))
		return false;
	state->ahead = false;
	state->current = 1 - state->current;
	if (state->subplan != NULL && is_empty(state->subplan))
	{
		take_untold(state, buffer);
		return true;
	}
	cfd_tokens_ask(state, buffer);
	/* The rows given out were those of the other one. */
	ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
	if (!state->ended && state->reading != CFD_TOKENS_SOME &&
		state->batch_rows > Min(AHEAD_ROWS, cfd_batch_rows / 2))
		state->ahead = cfd_tokens_read_batch(state, later);
	cfd_tokens_take(state, buffer);
	if (state->ahead && buffer->error == NULL)
		cfd_tokens_ask(state, later);
	return true;
}

/* ---------- execution ---------- */

/* The row with its token. */
static TupleTableSlot *
show(CfdTokensState *state, CfdBuffer *buffer)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;
	const char *token = state->tokens == NULL ? NULL : state->tokens + buffer->next * CFD_TOKEN_BYTES;

	cfd_buffer_show(buffer, buffer->next++, slot);
	slot->tts_values[buffer->columns] = PointerGetDatum(token);
	slot->tts_isnull[buffer->columns] = token == NULL || cfd_get64(token) == 0;
	return ExecStoreVirtualTuple(slot);
}

/* The row, if it passes the node's quals, as the node gives it; else NULL. */
static TupleTableSlot *
cfd_tokens_project(CfdTokensState *state, TupleTableSlot *row)
{
	PlanState  *node = &state->css.ss.ps;
	ExprContext *context = node->ps_ExprContext;

	if (node->qual == NULL && node->ps_ProjInfo == NULL)
		return row;
	ResetExprContext(context);
	context->ecxt_scantuple = row;
	if (!ExecQual(node->qual, context))
	{
		InstrCountFiltered1(node, 1);
		return NULL;
	}
	return node->ps_ProjInfo != NULL ? ExecProject(node->ps_ProjInfo) : row;
}

static TupleTableSlot *
cfd_tokens_next_row(CustomScanState *node)
{
	CfdTokensState *state = (CfdTokensState *) node;

	for (;;)
	{
		CfdBuffer  *buffer = &state->buffers[state->current];

		if (buffer->next < buffer->good)
		{
			TupleTableSlot *row = cfd_tokens_project(state, show(state, buffer));

			if (row != NULL)
				return row;
			continue;
		}
		if (buffer->error != NULL)
			cfd_raise_error(buffer->error, buffer->error_length);
		CHECK_FOR_INTERRUPTS();
		if (!cfd_tokens_turn(state))
			return ExecClearTuple(node->ss.ss_ScanTupleSlot);
	}
}

static void
cfd_tokens_forget_batches(CfdTokensState *state)
{
	ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
	for (int i = 0; i < 2; i++)
		cfd_buffer_empty(&state->buffers[i]);
	/* What comes after rows that were all wanted will be wanted, too, and is about as long. */
	state->batch_rows = first_rows(state);
	if (state->ended && state->reading != CFD_TOKENS_SOME && (state->subplan == NULL || is_hashed(state->subplan)))
		state->batch_rows = Max(state->batch_rows, Min(state->scanned + state->scanned / 4, cfd_batch_rows));
	state->scanned = 0;
	state->ahead = state->ended = false;
}

static void
cfd_tokens_rescan(CustomScanState *node)
{
	cfd_tokens_forget_batches((CfdTokensState *) node);
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

static void
cfd_tokens_end(CustomScanState *node)
{
	cfd_tokens_forget_batches((CfdTokensState *) node);
	ExecEndNode(outerPlanState(node));
}

/* ---------- EXPLAIN ---------- */

static void
cfd_tokens_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	CfdTokensState *state = (CfdTokensState *) node;
	Plan	   *plan = node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, plan, ancestors);
	bool		prefix = list_length(es->rtable) > 1 || es->verbose;
	List	   *names = NIL;
	ListCell   *cell;

	foreach(cell, list_nth_node(List, ((CustomScan *) plan)->custom_private, CFD_TOKENS_KEYS))
		names = lappend(names, deparse_expression(lfirst(cell), context, prefix, true));
	ExplainPropertyList("Token Key", names, es);
	if (es->analyze)
	{
		ExplainPropertyUInteger("Rows Hashed", NULL, state->rows, es);
		ExplainPropertyUInteger("Exchanges", NULL, state->exchanges, es);
	}
}

static const CustomExecMethods exec_methods = {
	.CustomName = "ConfideTokens",
	.BeginCustomScan = cfd_tokens_begin,
	.ExecCustomScan = cfd_tokens_next_row,
	.EndCustomScan = cfd_tokens_end,
	.ReScanCustomScan = cfd_tokens_rescan,
	.ExplainCustomScan = cfd_tokens_explain,
};

const CustomScanMethods cfd_tokens_methods = {
	.CustomName = "ConfideTokens",
	.CreateCustomScanState = cfd_tokens_create_state,
};
