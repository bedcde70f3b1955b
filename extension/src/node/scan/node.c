/*
 * node.c
 *	  Executes ConfideScan; see scan.h.
 *
 * The node asks the keeper which rows of a batch pass the quals. It then sends
 * the expressions over these rows and, if all rows are wanted, the quals of
 * the next batch. Only then does it wait for the answer about the expressions.
 * Where rows may be left unread, the keeper decides a batch in pieces and
 * nothing is asked in advance (batch/driver.h).
 *
 * For a semijoin or antijoin, the rows are the outer ones. The keeper is sent
 * their pairs and reports only which rows have a match.
 *
 * Invariant: as in scan.h.
 */
#include "postgres.h"

#include "cell/cell.h"
#include "executor/executor.h"
#include "node/scan/pairs.h"
#include "node/scan/scan.h"
#include "node/scan/state.h"
#include "node/scan/switched.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "wire/columns.h"

/* ---------- which rows pass ---------- */

/* Asks which rows pass, judged by their own inputs. */
static void
ask_about_rows(CfdScanState *state, CfdBuffer *buffer, int rows)
{
	CfdWireDeclassifyBatch fixed = {
		.rows = rows,.columns = buffer->quals->count,.wanted = state->wanted
	};

	cfd_program_message();
	fixed.program = cfd_program_handle(state->filter);
	resetStringInfo(&state->driver.body);
	cfd_inputs_put(buffer->quals, &state->driver.body, buffer->decided, rows);
	cfd_request(&buffer->filter, CFD_KIND_DECLASSIFY_BATCH, &fixed, sizeof(fixed),
				state->driver.body.data, state->driver.body.len, CFD_ANSWER_BYTES + rows);
}

/* Asks which rows pass, judged by the inputs of their pairs. */
static void
ask_about_pairs(CfdScanState *state, CfdBuffer *buffer, int rows)
{
	int			before = cfd_buffer_pairs_before(buffer, buffer->decided);
	CfdWireDeclassifyGroups fixed = {
		.rows = buffer->pairs - before,.columns = buffer->quals->count,.wanted = state->wanted,
		.groups = rows,.none = state->loop->js.jointype == JOIN_ANTI
	};

	cfd_program_message();
	fixed.program = cfd_program_handle(state->filter);
	resetStringInfo(&state->driver.body);
	for (int row = buffer->decided; row < buffer->rows; row++)
	{
		uint32		length = buffer->ends[row] - cfd_buffer_pairs_before(buffer, row);

		appendBinaryStringInfo(&state->driver.body, (const char *) &length, sizeof(length));
	}
	cfd_inputs_put(buffer->quals, &state->driver.body, before, buffer->pairs - before);
	cfd_request(&buffer->filter, CFD_KIND_DECLASSIFY_GROUPS, &fixed, sizeof(fixed),
				state->driver.body.data, state->driver.body.len, CFD_ANSWER_BYTES + rows);
}

static void
cfd_scan_ask(CfdDriver *driver, CfdBuffer *buffer)
{
	CfdScanState *state = cfd_scan_of(driver);
	instr_time	start;

	if (state->filter == NULL)
		return;
	if (state->switched != NULL)
		cfd_switched_clock(&start);
	if (state->loop != NULL)
		ask_about_pairs(state, buffer, buffer->rows - buffer->decided);
	else
		ask_about_rows(state, buffer, buffer->rows - buffer->decided);
	if (state->switched != NULL)
		cfd_switched_spent(state->switched, start);
	buffer->asked = true;
	driver->round_trips++;
}

/* Decides about the last row of a cut batch, which has more pairs to be read. */
static void
take_cut(CfdScanState *state, CfdBuffer *buffer)
{
	bool		passes = buffer->good > 0 && buffer->passing[buffer->good - 1] == buffer->rows - 1;
	bool		matched = passes == (state->loop->js.jointype == JOIN_SEMI);

	if (matched)
		cfd_pairs_leave_row(state->loop);
	else
		buffer->good -= passes;
}

/*
 * Waits for an answer about encodings. Where the keeper refuses (it has the key
 * no more, no grant covers it), PostgreSQL decides, and false is returned.
 */
static bool
cfd_scan_answered(CfdScanState *state, CfdBuffer *buffer)
{
	instr_time	start;
	bool		refused;

	cfd_switched_clock(&start);
	refused = cfd_await_refusal(&buffer->filter);
	cfd_switched_spent(state->switched, start);
	if (!refused)
		return true;
	buffer->asked = false;
	cfd_switched_decide(state, buffer);
	return false;
}

/* Records which rows pass, as far as the keeper has reported. */
static void
take_passing(CfdScanState *state, CfdBuffer *buffer)
{
	CfdReadRevealed read;
	uint32		asked = buffer->rows - buffer->decided;
	uint32		good;

	buffer->good = buffer->next = 0;
	if (state->filter == NULL)
	{
		for (int row = 0; row < buffer->rows; row++)
			buffer->passing[row] = row;
		buffer->good = buffer->decided = buffer->rows;
		return;
	}
	if (state->switched != NULL && !cfd_scan_answered(state, buffer))
		return;
	read = cfd_driver_await_revealed(&state->driver, &buffer->filter, asked, 1);
	good = read.head.good;
	for (int row = 0; row < good; row++)
	{
		if (read.results[row] == 1)
			buffer->passing[buffer->good++] = buffer->decided + row;
	}
	buffer->decided += good;
	state->bits += good;
	state->removed += good - buffer->good;
	buffer->asked = false;
	/* Unless there is an error, the remaining rows have not been reported yet. */
	if (good == 0 && !read.has_error)
		cfd_violation("answer about a batch has no rows");
	if (state->switched != NULL)
		cfd_switched_decided(state, good);
	if (read.has_error && state->switched != NULL)
		cfd_switched_decide(state, buffer);
	else if (read.has_error)
		cfd_buffer_fail(buffer, &read.error);
	if (buffer->cut && buffer->decided == buffer->rows)
		take_cut(state, buffer);
	if (buffer->good == state->wanted)
		state->wanted = state->wanted < CFD_BATCH_ROWS_MAX ? state->wanted * 2 : 0;
	state->driver.asks_ahead = state->wanted == 0;
}

/* ---------- expressions over passing rows ---------- */

/* Has the expressions computed over the rows that pass. */
static void
send_project(CfdScanState *state, CfdBuffer *buffer)
{
	CfdWireEvalBatch fixed = {
		.rows = buffer->good,.columns = buffer->projected->count,.programs = list_length(state->computed)
	};
	ExprContext *context = state->driver.context;
	ListCell   *cell;

	for (int i = 0; i < buffer->good; i++)
	{
		cfd_buffer_show(buffer, buffer->passing[i], state->row);
		if (buffer->projected->evaluates)
			ResetExprContext(context);
		context->ecxt_scantuple = state->row;
		cfd_inputs_row(buffer->projected, state->row, context, i);
	}
	resetStringInfo(&state->driver.body);
	cfd_program_message();
	foreach(cell, state->computed)
	{
		CfdWireTarget target = {.program = cfd_program_handle(lfirst(cell))};

		target.first = cfd_channel.next[CFD_STATEMENT];
		buffer->first[foreach_current_index(cell)] = target.first;
		cfd_channel.next[CFD_STATEMENT] += buffer->good;
		appendBinaryStringInfo(&state->driver.body, (const char *) &target, sizeof(target));
	}
	cfd_inputs_put(buffer->projected, &state->driver.body, 0, buffer->good);
	cfd_request(&buffer->project, CFD_KIND_EVAL_BATCH, &fixed, sizeof(fixed),
				state->driver.body.data, state->driver.body.len,
				CFD_ANSWER_BYTES + list_length(state->computed) * (buffer->good + sizeof(CfdWireNulls)));
	state->driver.round_trips++;
	state->values += (uint64) buffer->good * list_length(state->computed);
}

static void
take_projected(CfdScanState *state, CfdBuffer *buffer)
{
	uint32		length;
	const char *answer = cfd_driver_await(&state->driver, &buffer->project, &length);
	CfdReadEvalBatchAnswer read;
	CfdReadNulls nulls;
	int			computed = list_length(state->computed);

	CFD_DECODE(eval_batch_answer, answer, length, &read);
	if (read.head.good > buffer->good || read.head.programs != computed ||
		read.has_error != (read.head.good < buffer->good))
		cfd_violation("answer about other rows");
	for (int i = 0; i < computed && cfd_read_nulls(&read.nulls, &nulls); i++)
	{
		if (nulls.rows_length != (nulls.head.count != 0 ? buffer->good : 0))
			cfd_violation("answer about a batch has NULLs of other rows");
		buffer->computed_nulls[i] = nulls.head.count != 0 ? nulls.rows : NULL;
	}
	/* An error in the quals belongs to a later row. */
	if (read.has_error)
		cfd_buffer_fail(buffer, &read.error);
	buffer->good = read.head.good;
}

/* ---------- driver callbacks ---------- */

static void
cfd_scan_take(CfdDriver *driver, CfdBuffer *buffer)
{
	CfdScanState *state = cfd_scan_of(driver);

	take_passing(state, buffer);
	state->computing = state->computed != NIL && buffer->good > 0;
	if (state->computing)
		send_project(state, buffer);
}

static void
cfd_scan_finish(CfdDriver *driver, CfdBuffer *buffer)
{
	CfdScanState *state = cfd_scan_of(driver);

	if (state->computing)
		take_projected(state, buffer);
}

static bool
read_pairs(CfdDriver *driver, CfdBuffer *buffer)
{
	return cfd_pairs_read(cfd_scan_of(driver)->loop, buffer, driver->context, driver->batch_rows);
}

static const CfdDriverMethods cfd_scan_driver = {
	.ask = cfd_scan_ask,
	.take = cfd_scan_take,
	.finish = cfd_scan_finish,
};

static const CfdDriverMethods cfd_scan_pairs_driver = {
	.ask = cfd_scan_ask,
	.take = cfd_scan_take,
	.finish = cfd_scan_finish,
	.read = read_pairs,
};

/* ---------- executor startup ---------- */

typedef struct Lift
{
	CfdScanState *state;
	int			columns;		/* number of columns of the child */
} Lift;

/*
 * Compiles the protected expressions of the target list that are evaluated
 * unconditionally, and replaces them by Vars of the computed columns.
 */
static Node *
lift(Node *node, void *context)
{
	Lift	   *lifted = context;
	CfdProgram *program;

	if (node == NULL)
		return NULL;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
		case T_Param:
			return node;
			/* These always evaluate their arguments. */
		case T_TargetEntry:
		case T_List:
			return expression_tree_mutator(node, lift, context);
		default:
			break;
	}
	/*
	 * The number of columns in a message is limited. Further expressions are
	 * evaluated row by row. A cell remains a cell.
	 */
	program = list_length(lifted->state->computed) == CFD_COLUMNS_MAX || cfd_cell_code(exprType(node)) != 0 ? NULL
		: cfd_compile(lifted->state->project_inputs, node);
	if (program != NULL && program->result == CFD_RESULT_FID)
	{
		lifted->state->computed = lappend(lifted->state->computed, program);
		lifted->state->computed_types = lappend_oid(lifted->state->computed_types, exprType(node));
		return (Node *) makeVar(INDEX_VAR, lifted->columns + list_length(lifted->state->computed),
								exprType(node), exprTypmod(node), exprCollation(node), 0);
	}
	if (IsA(node, FuncExpr) || IsA(node, OpExpr))
		return expression_tree_mutator(node, lift, context);
	return node;
}

/* Marks the child's columns that are needed after the keeper's answer. */
static bool *
kept_columns(CfdScanState *state, List *targets, int columns)
{
	bool	   *kept = palloc0(columns * sizeof(bool));
	List	   *vars = pull_var_clause((Node *) targets, PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS);
	ListCell   *cell;

	vars = list_concat(vars, pull_var_clause((Node *) state->css.ss.ps.plan->qual, PVC_RECURSE_PLACEHOLDERS));
	if (state->switched != NULL)
		vars = list_concat(vars, pull_var_clause(linitial(((CustomScan *) state->css.ss.ps.plan)->custom_exprs),
												 PVC_RECURSE_PLACEHOLDERS));
	for (int i = 0; i < state->project_inputs->count; i++)
		vars = list_concat(vars, pull_var_clause((Node *) state->project_inputs->inputs[i].expr, PVC_RECURSE_PLACEHOLDERS));
	foreach(cell, vars)
	{
		Var		   *var = lfirst(cell);

		if (var->varno == INDEX_VAR && var->varattno > 0 && var->varattno <= columns)
			kept[var->varattno - 1] = true;
	}
	return kept;
}

/* Tuple descriptor of the child's columns followed by the computed ones. */
static TupleDesc
row_description(CfdScanState *state, TupleDesc child)
{
	TupleDesc	row = CreateTemplateTupleDesc(child->natts + list_length(state->computed));
	ListCell   *cell;

	for (int i = 0; i < child->natts; i++)
		TupleDescCopyEntry(row, i + 1, child, i + 1);
	foreach(cell, state->computed_types)
		TupleDescInitEntry(row, child->natts + 1 + foreach_current_index(cell), NULL, lfirst_oid(cell), -1, 0);
	return row;
}

/* Last attribute of the child's slot that is kept or used by quals. */
static int
last_needed(const CfdScanState *state, const bool *kept, int columns)
{
	List	   *vars = NIL;
	ListCell   *cell;
	int			last = 0;

	for (int i = 0; i < columns; i++)
	{
		if (kept[i])
			last = i + 1;
	}
	for (int i = 0; i < state->qual_inputs->count; i++)
		vars = list_concat(vars, pull_var_clause((Node *) state->qual_inputs->inputs[i].expr, PVC_RECURSE_PLACEHOLDERS));
	foreach(cell, vars)
		last = Max(last, ((Var *) lfirst(cell))->varattno);
	return last;
}

static void
make_scan_buffers(CfdScanState *state, const bool *kept, int columns)
{
	for (int i = 0; i < 2; i++)
	{
		CfdBuffer  *buffer = &state->driver.buffers[i];

		cfd_buffer_init(buffer, columns, kept, list_length(state->computed));
		buffer->paired = state->loop != NULL;
		if (state->filter != NULL)
			buffer->quals = cfd_inputs_create(state->qual_inputs, &state->css.ss.ps);
		if (state->computed != NIL)
			buffer->projected = cfd_inputs_create(state->project_inputs, &state->css.ss.ps);
	}
}

static void
begin_driver(CfdScanState *state, PlanState *child, const bool *kept, int columns)
{
	CfdDriver  *driver = &state->driver;

	driver->methods = state->loop != NULL ? &cfd_scan_pairs_driver : &cfd_scan_driver;
	driver->child = child;
	driver->last_attribute = last_needed(state, kept, columns);
	/* A join may want a single row before it knows whether there are others to join. */
	driver->first_rows = outerPlanState(state) != NULL ? 1 : CFD_BATCH_FIRST_ROWS;
	driver->node = &state->css.ss.ps;
	driver->reads_ahead = true;
	driver->asks_ahead = state->wanted == 0;
	make_scan_buffers(state, kept, columns);
	cfd_driver_begin(driver);
}

/*
 * Where a node was inserted into the finished plan (cfd_scan_over), the child is
 * its outer plan.
 */
static PlanState *
begin_child(CustomScanState *node, EState *estate, int eflags)
{
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;

	if (outerPlan(scan) != NULL)
		return outerPlanState(node) = ExecInitNode(outerPlan(scan), estate, eflags);
	node->custom_ps = list_make1(ExecInitNode(linitial(scan->custom_plans), estate, eflags));
	return linitial(node->custom_ps);
}

static void
cfd_scan_begin(CustomScanState *node, EState *estate, int eflags)
{
	CfdScanState *state = (CfdScanState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	PlanState  *child = begin_child(node, estate, eflags);
	TupleDesc	rows = ExecGetResultType(child);
	Lift		lifted = {.state = state,.columns = rows->natts};
	List	   *targets;
	bool	   *kept;

	state->loop = cfd_pairs_begin(child);
	state->project_inputs = cfd_compiler_with_lists();
	if (scan->custom_exprs != NIL)
		state->filter = cfd_program_of_list(lsecond(scan->custom_private), lsecond(scan->custom_exprs));
	if (cfd_switch_private(scan) != NIL)
		state->switched = cfd_switched_begin(state, scan);
	state->qual_inputs = state->filter != NULL ? state->filter->compiler : cfd_compiler();
	targets = scan->scan.plan.targetlist;
	/*
	 * Quals that are evaluated row by row come first, because expressions may
	 * rely on them.
	 */
	if (scan->scan.plan.qual == NIL && state->switched == NULL)
		targets = (List *) lift((Node *) targets, &lifted);
	kept = kept_columns(state, targets, rows->natts);
	/* Without a projection the child's whole row is the result. */
	if (node->ss.ps.ps_ProjInfo == NULL)
		memset(kept, true, rows->natts);
	state->row = ExecAllocTableSlot(&estate->es_tupleTable, row_description(state, rows), &TTSOpsVirtual);
	if (node->ss.ps.ps_ProjInfo != NULL)
		state->projection = ExecBuildProjectionInfo(targets, node->ss.ps.ps_ExprContext,
													node->ss.ps.ps_ResultTupleSlot, &node->ss.ps,
													state->row->tts_tupleDescriptor);
	state->ends_early = boolVal(linitial(scan->custom_private));
	state->wanted = state->ends_early ? 1 : 0;
	begin_driver(state, child, kept, rows->natts);
}

/* ---------- execution ---------- */

/* Returns the next row that passes, or NULL at the end. */
TupleTableSlot *
cfd_scan_next_row(CfdScanState *state)
{
	CfdBuffer  *buffer = cfd_driver_next(&state->driver);
	int			computed = list_length(state->computed);

	if (buffer == NULL)
		return NULL;
	cfd_buffer_show(buffer, buffer->passing[buffer->next], state->row);
	for (int i = 0; i < computed; i++)
	{
		state->row->tts_values[buffer->columns + i] = UInt64GetDatum(buffer->first[i] + buffer->next);
		state->row->tts_isnull[buffer->columns + i] = buffer->computed_nulls[i] != NULL &&
			buffer->computed_nulls[i][buffer->next] != 0;
	}
	buffer->next++;
	return ExecStoreVirtualTuple(state->row);
}

static TupleTableSlot *
exec_scan(CustomScanState *node)
{
	CfdScanState *state = (CfdScanState *) node;
	ExprContext *context = node->ss.ps.ps_ExprContext;

	for (;;)
	{
		TupleTableSlot *row = state->switched != NULL ? cfd_switched_next(state) : cfd_scan_next_row(state);

		if (row == NULL)
			return state->projection != NULL ? ExecClearTuple(node->ss.ps.ps_ResultTupleSlot) : NULL;
		ResetExprContext(context);
		context->ecxt_scantuple = row;
		if (node->ss.ps.qual != NULL && !ExecQual(node->ss.ps.qual, context))
		{
			InstrCountFiltered1(node, 1);
			continue;
		}
		return state->projection != NULL ? ExecProject(state->projection) : row;
	}
}

static void
forget_batches(CfdScanState *state)
{
	cfd_driver_restart(&state->driver, true);
	if (state->switched != NULL)
		cfd_switched_restart(state->switched);
	state->wanted = state->ends_early ? 1 : 0;
	state->driver.asks_ahead = state->wanted == 0;
}

static void
cfd_scan_rescan(CustomScanState *node)
{
	PlanState  *child = ((CfdScanState *) node)->driver.child;

	forget_batches((CfdScanState *) node);
	if (node->ss.ps.chgParam != NULL)
		UpdateChangedParamSet(child, node->ss.ps.chgParam);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

static void
end_scan(CustomScanState *node)
{
	forget_batches((CfdScanState *) node);
	ExecEndNode(((CfdScanState *) node)->driver.child);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "ConfideScan",
	.BeginCustomScan = cfd_scan_begin,
	.ExecCustomScan = exec_scan,
	.EndCustomScan = end_scan,
	.ReScanCustomScan = cfd_scan_rescan,
	.ExplainCustomScan = cfd_scan_explain,
};

Node *
cfd_scan_create_state(CustomScan *scan)
{
	CfdScanState *state = palloc0(sizeof(CfdScanState));

	(void) scan;
	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	return (Node *) state;
}
