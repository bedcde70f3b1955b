/*
 * node.c
 *	  Executes ConfideTokens; see tokens.h.
 *
 * The batch driver (batch/driver.h) reads the rows. Where all of them will be
 * wanted, the keeper is asked about the next batch in advance.
 *
 * Invariant: as in tokens.h.
 */
#include "postgres.h"

#include "compat/explain.h"
#include "wire/columns.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "batch/driver.h"
#include "node/tokens/tokens.h"
#include "value/types.h"
#include "utils/ruleutils.h"

/* Number shared by both sides of a join, so that their tokens are comparable. */
typedef struct Numbered
{
	uint64		number;
	uint32		generation;		/* channel generation; 0: no tokens requested yet */
} Numbered;

typedef struct CfdTokensState
{
	CustomScanState css;
	CfdCompiler keys;
	Numbered   *numbered;
	bool		nulls_equal;
	CfdTokensReading reading;
	const SubPlanState *subplan;	/* where tokens are looked up, or NULL */
	CfdDriver	driver;			/* reads the child's rows */
	const char *tokens;			/* of the current buffer; NULL: not needed */
	uint64		rows;			/* for EXPLAIN ANALYZE */
} CfdTokensState;

static const CustomExecMethods exec_methods;
static const CfdDriverMethods driver_methods;
static uint64 last_number = 0;

/* ---------- executor startup ---------- */

static Node *
cfd_tokens_create_state(CustomScan *node)
{
	CfdTokensState *state = (CfdTokensState *) newNode(sizeof(CfdTokensState), T_CustomScanState);

	state->css.flags = node->flags;
	state->css.methods = &exec_methods;
	return (Node *) state;
}

/*
 * The key without binary-compatible casts: text relabelled as varchar has the
 * same FID.
 */
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

/*
 * The number of a join. The node that is initialised first allocates it, the
 * other one finds it.
 */
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
make_token_buffers(CfdTokensState *state, TupleDesc rows)
{
	bool	   *kept = palloc(rows->natts);

	memset(kept, true, rows->natts);
	for (int i = 0; i < 2; i++)
	{
		cfd_buffer_init(&state->driver.buffers[i], rows->natts, kept, 0);
		state->driver.buffers[i].quals = cfd_inputs_create(&state->keys, &state->css.ss.ps);
	}
}

/* Finds the subplan in the node's own expressions whose results have tokens. */
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

/*
 * Whether a subplan's hash table is valid for the next lookup, and whether it
 * is empty.
 */
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

static void
cfd_tokens_begin(CustomScanState *node, EState *estate, int flags)
{
	CfdTokensState *state = (CfdTokensState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	const int	again = EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK;
	CfdDriver  *driver = &state->driver;
	TupleDesc	rows;

	outerPlanState(state) = ExecInitNode(outerPlan(plan), estate, flags & ~again);
	rows = ExecGetResultType(outerPlanState(state));
	cfd_tokens_read_keys(state, list_nth(plan->custom_private, CFD_TOKENS_KEYS));
	state->numbered = numbered(estate, intVal(list_nth(plan->custom_private, CFD_TOKENS_NUMBER)));
	state->nulls_equal = intVal(list_nth(plan->custom_private, CFD_TOKENS_NULLS_EQUAL)) != 0;
	state->reading = intVal(list_nth(plan->custom_private, CFD_TOKENS_READING));
	state->subplan = find_subplan(&node->ss.ps, intVal(list_nth(plan->custom_private, CFD_TOKENS_SUBPLAN)));
	driver->methods = &driver_methods;
	driver->node = &node->ss.ps;
	driver->child = outerPlanState(state);
	driver->last_attribute = rows->natts;
	/* The token of a single row reveals nothing if it is compared with no other. */
	driver->first_rows = state->reading == CFD_TOKENS_ALL ? CFD_BATCH_FIRST_ROWS : 1;
	driver->asks_ahead = true;
	make_token_buffers(state, rows);
	cfd_driver_begin(driver);
}

/* ---------- a batch ---------- */

/* Tokens of another channel cannot be compared with the existing ones. */
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

static inline CfdTokensState *
state_of(CfdDriver *driver)
{
	return (CfdTokensState *) ((char *) driver - offsetof(CfdTokensState, driver));
}

/* Whether there is nothing that tokens could be compared with. */
static bool
is_untold(const CfdTokensState *state)
{
	return state->subplan != NULL && is_empty(state->subplan);
}

/* Requests the tokens of a batch. */
static void
cfd_tokens_ask(CfdDriver *driver, CfdBuffer *buffer)
{
	CfdTokensState *state = state_of(driver);
	CfdWireTokens fixed = {
		.rows = buffer->rows,.columns = buffer->quals->count,.nulls_equal = state->nulls_equal
	};

	driver->reads_ahead = state->reading != CFD_TOKENS_SOME && !is_untold(state);
	if (is_untold(state))
		return;
	check_channel(state->numbered);
	fixed.number = state->numbered->number;
	resetStringInfo(&driver->body);
	for (int i = 0; i < buffer->quals->count; i++)
		appendStringInfoChar(&driver->body, (char) buffer->quals->columns[i].type);
	cfd_inputs_put(buffer->quals, &driver->body, 0, buffer->rows);
	cfd_request(&buffer->filter, CFD_KIND_TOKENS, &fixed, sizeof(fixed), driver->body.data, driver->body.len,
				CFD_ANSWER_BYTES + buffer->rows * CFD_TOKEN_BYTES);
	buffer->asked = true;
	driver->round_trips++;
}

static void
cfd_tokens_take(CfdDriver *driver, CfdBuffer *buffer)
{
	CfdTokensState *state = state_of(driver);
	CfdReadRevealed read;

	/* The slot's contents belong to the other buffer. */
	ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
	buffer->next = 0;
	buffer->good = buffer->decided = buffer->rows;
	buffer->failed = false;
	state->tokens = NULL;
	if (is_untold(state))
		return;
	read = cfd_driver_await_revealed(driver, &buffer->filter, buffer->rows, CFD_TOKEN_BYTES);
	if (read.head.good < buffer->rows && !read.has_error)
		cfd_violation("tokens of other rows");
	state->tokens = (const char *) read.results;
	state->rows += read.head.good;
	buffer->good = read.head.good;
	if (read.has_error)
		cfd_buffer_fail(buffer, &read.error);
}

static const CfdDriverMethods driver_methods = {
	.ask = cfd_tokens_ask,
	.take = cfd_tokens_take,
};

/* ---------- execution ---------- */

/* Stores the row and its token in the scan slot. */
static TupleTableSlot *
show(CfdTokensState *state, CfdBuffer *buffer)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;
	const char *token = state->tokens == NULL ? NULL : state->tokens + buffer->next * CFD_TOKEN_BYTES;

	cfd_buffer_show(buffer, buffer->next++, slot);
	slot->tts_values[buffer->columns] = PointerGetDatum(token);
	slot->tts_isnull[buffer->columns] = token == NULL || *(const CfdWireU64 *) token == 0;
	return ExecStoreVirtualTuple(slot);
}

/* Applies the node's quals and projection. Returns NULL if the row does not pass. */
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
	CfdBuffer  *buffer;

	while ((buffer = cfd_driver_next(&state->driver)) != NULL)
	{
		TupleTableSlot *row = cfd_tokens_project(state, show(state, buffer));

		if (row != NULL)
			return row;
	}
	return ExecClearTuple(node->ss.ss_ScanTupleSlot);
}

/* Restarts the driver. If all rows were wanted before, they will be wanted again. */
static void
restart(CfdTokensState *state)
{
	ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
	cfd_driver_restart(&state->driver, state->reading != CFD_TOKENS_SOME &&
					   (state->subplan == NULL || is_hashed(state->subplan)));
}

static void
cfd_tokens_rescan(CustomScanState *node)
{
	restart((CfdTokensState *) node);
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

static void
cfd_tokens_end(CustomScanState *node)
{
	restart((CfdTokensState *) node);
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
		ExplainPropertyUInteger("Round Trips", NULL, state->driver.round_trips, es);
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
