/*
 * node.c
 *	  Execution of the batched scan: see scan.h.
 *
 * Two buffers take turns. While the keeper has the quals of one, the other is filled. Then the
 * expressions over the passing rows are sent, then, if all rows are wanted, the quals of
 * the other buffer, and only then the answer about the expressions is awaited. Where rows
 * may be left unread, the keeper decides a buffer in pieces, and nothing is asked about
 * in advance. The first batches are small and nothing is read ahead of them, so that a
 * LIMIT costs little.
 *
 * An error of a row comes with the answer and is raised when its turn comes, if it
 * does.
 *
 * Of a semi or anti join the rows are the outer ones; the keeper is sent their pairs, and tells
 * only which of the rows have a match.
 *
 * Invariant: as of scan.h.
 */
#include "postgres.h"

#include "wire/columns.h"
#include "session/error.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "batch/buffer.h"
#include "node/scan/pairs.h"
#include "node/scan/scan.h"
#include "optimizer/optimizer.h"
#include "program/compile.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"

/* Bytes of an answer beside the rows: head, and most errors. */
#define ANSWER_BYTES (8 + 512)
/* Smaller batches are not read ahead. */
#define AHEAD_ROWS 512

typedef struct CfdScanState
{
	CustomScanState css;
	CfdCompiler *qual_inputs;
	CfdProgram *filter;			/* NULL: none */
	NestLoopState *loop;		/* of a semi or anti join, or NULL */
	CfdCompiler *project_inputs;
	List	   *computed;		/* CfdProgram, column by column */
	List	   *computed_types; /* OIDs of their SQL types */
	TupleTableSlot *row;		/* child's attributes, then computed ones */
	ProjectionInfo *projection; /* NULL: the row as it is */
	ExprContext *inputs_context;
	CfdBuffer	buffers[2];
	int			current;		/* buffer whose rows are given out */
	bool		ahead;			/* the other one is filled */
	bool		ended;			/* the child has no more rows */
	int			batch_rows;		/* of the next batch */
	bool		ends_early;		/* rows may be left unread */
	uint32		wanted;			/* passing rows to be told of next; 0: all */
	uint64		scanned;		/* rows of the child since it began anew */
	int			last_attribute; /* of the child's slot, that is needed */
	CfdStored  *stored;			/* rows as they are stored; NULL: from slots only */
	StringInfoData body;
	/* for EXPLAIN ANALYZE */
	uint64		batches;
	uint64		exchanges;
	uint64		bits;
	uint64		removed;
	uint64		values;
	instr_time	waited;
} CfdScanState;

/* ---------- beginning ---------- */

typedef struct Lift
{
	CfdScanState *state;
	int			columns;		/* of the child */
} Lift;

/*
 * Makes programs of the protected expressions in the target list, which are always
 * evaluated; their places are taken by Vars of the computed columns.
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
			/* These evaluate their arguments always. */
		case T_TargetEntry:
		case T_List:
			return expression_tree_mutator(node, lift, context);
		default:
			break;
	}
	/* One message takes so many; what is more is evaluated row by row. */
	program = list_length(lifted->state->computed) == CFD_COLUMNS_MAX ? NULL
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

/* The child's columns that are needed after the keeper's answer. */
static bool *
kept_columns(CfdScanState *state, List *targets, int columns)
{
	bool	   *kept = palloc0(columns * sizeof(bool));
	List	   *vars = pull_var_clause((Node *) targets, PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS);
	ListCell   *cell;

	vars = list_concat(vars, pull_var_clause((Node *) state->css.ss.ps.plan->qual, PVC_RECURSE_PLACEHOLDERS));
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

/* The child's row, then the computed columns. */
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

static void
last_needed(CfdScanState *state, const bool *kept, int columns)
{
	List	   *vars = NIL;
	ListCell   *cell;

	for (int i = 0; i < columns; i++)
	{
		if (kept[i])
			state->last_attribute = i + 1;
	}
	for (int i = 0; i < state->qual_inputs->count; i++)
		vars = list_concat(vars, pull_var_clause((Node *) state->qual_inputs->inputs[i].expr, PVC_RECURSE_PLACEHOLDERS));
	foreach(cell, vars)
		state->last_attribute = Max(state->last_attribute, ((Var *) lfirst(cell))->varattno);
}

static void
cfd_scan_make_buffers(CfdScanState *state, const bool *kept, int columns)
{
	for (int i = 0; i < 2; i++)
	{
		CfdBuffer  *buffer = &state->buffers[i];

		cfd_buffer_init(buffer, columns, kept, list_length(state->computed));
		buffer->paired = state->loop != NULL;
		if (state->filter != NULL)
			buffer->quals = cfd_inputs_create(state->qual_inputs, &state->css.ss.ps);
		if (state->computed != NIL)
			buffer->projected = cfd_inputs_create(state->project_inputs, &state->css.ss.ps);
	}
}

static void
begin_scan(CustomScanState *node, EState *estate, int eflags)
{
	CfdScanState *state = (CfdScanState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	PlanState  *child = ExecInitNode(linitial(scan->custom_plans), estate, eflags);
	TupleDesc	rows = ExecGetResultType(child);
	Lift		lifted = {.state = state,.columns = rows->natts};
	List	   *targets;
	bool	   *kept;

	node->custom_ps = list_make1(child);
	state->loop = cfd_pairs_begin(child);
	state->qual_inputs = cfd_compiler();
	state->project_inputs = cfd_compiler();
	if (scan->custom_exprs != NIL)
	{
		state->filter = cfd_compile_quals(state->qual_inputs, scan->custom_exprs);
		if (state->filter == NULL)
			elog(ERROR, "confide: quals do not compile any more");
	}
	targets = scan->scan.plan.targetlist;
	/* Quals that are evaluated row by row come first: expressions may rely on them. */
	if (scan->scan.plan.qual == NIL)
		targets = (List *) lift((Node *) targets, &lifted);
	kept = kept_columns(state, targets, rows->natts);
	last_needed(state, kept, rows->natts);
	if (node->ss.ps.ps_ProjInfo == NULL)
	{
		/* The child's row is the result: all of it. */
		memset(kept, true, rows->natts);
		state->last_attribute = rows->natts;
	}
	state->row = ExecAllocTableSlot(&estate->es_tupleTable, row_description(state, rows), &TTSOpsVirtual);
	if (node->ss.ps.ps_ProjInfo != NULL)
		state->projection = ExecBuildProjectionInfo(targets, node->ss.ps.ps_ExprContext,
													node->ss.ps.ps_ResultTupleSlot, &node->ss.ps,
													state->row->tts_tupleDescriptor);
	state->inputs_context = CreateExprContext(estate);
	cfd_scan_make_buffers(state, kept, rows->natts);
	if (state->filter == NULL || !state->buffers[0].quals->evaluates)
		state->stored = cfd_stored_create(state->last_attribute);
	state->batch_rows = Min(CFD_BATCH_FIRST_ROWS, cfd_batch_rows);
	state->ends_early = boolVal(linitial(scan->custom_private));
	state->wanted = state->ends_early ? 1 : 0;
	initStringInfo(&state->body);
	INSTR_TIME_SET_ZERO(state->waited);
}

/* ---------- a batch ---------- */

/* Asks which rows pass by their own inputs. */
static void
ask_about_rows(CfdScanState *state, CfdBuffer *buffer, int rows)
{
	unsigned char fixed[CFD_FIXED_DECLASSIFY_BATCH] = {0};

	cfd_program_message();
	cfd_put32(fixed, cfd_program_handle(state->filter));
	cfd_put32(fixed + 4, rows);
	cfd_put32(fixed + 8, buffer->quals->count);
	cfd_put32(fixed + 12, state->wanted);
	resetStringInfo(&state->body);
	cfd_inputs_put(buffer->quals, &state->body, buffer->decided, rows);
	cfd_request(&buffer->filter, CFD_KIND_DECLASSIFY_BATCH, fixed, sizeof(fixed),
				state->body.data, state->body.len, ANSWER_BYTES + rows);
}

/* Asks which rows pass by those of their pairs. */
static void
ask_about_pairs(CfdScanState *state, CfdBuffer *buffer, int rows)
{
	unsigned char fixed[CFD_FIXED_DECLASSIFY_GROUPS] = {0};
	int			before = cfd_buffer_pairs_before(buffer, buffer->decided);

	cfd_program_message();
	cfd_put32(fixed, cfd_program_handle(state->filter));
	cfd_put32(fixed + 4, buffer->pairs - before);
	cfd_put32(fixed + 8, buffer->quals->count);
	cfd_put32(fixed + 12, state->wanted);
	cfd_put32(fixed + 16, rows);
	cfd_put32(fixed + 20, state->loop->js.jointype == JOIN_ANTI);
	resetStringInfo(&state->body);
	for (int row = buffer->decided; row < buffer->rows; row++)
	{
		unsigned char length[sizeof(uint32)];

		cfd_put32(length, buffer->ends[row] - cfd_buffer_pairs_before(buffer, row));
		appendBinaryStringInfo(&state->body, (const char *) length, sizeof(length));
	}
	cfd_inputs_put(buffer->quals, &state->body, before, buffer->pairs - before);
	cfd_request(&buffer->filter, CFD_KIND_DECLASSIFY_GROUPS, fixed, sizeof(fixed),
				state->body.data, state->body.len, ANSWER_BYTES + rows);
}

/* Asks which of the rows that are not decided yet pass, unless that has been done. */
static void
send_filter(CfdScanState *state, CfdBuffer *buffer)
{
	if (state->filter == NULL || buffer->asked)
		return;
	if (state->loop != NULL)
		ask_about_pairs(state, buffer, buffer->rows - buffer->decided);
	else
		ask_about_rows(state, buffer, buffer->rows - buffer->decided);
	buffer->asked = true;
	state->exchanges++;
}

static void
cfd_scan_add_row(CfdScanState *state, CfdBuffer *buffer, TupleTableSlot *slot)
{
	ExprContext *context = state->inputs_context;

	slot_getsomeattrs(slot, state->last_attribute);
	if (buffer->quals != NULL)
	{
		if (buffer->quals->evaluates)
			ResetExprContext(context);
		context->ecxt_scantuple = slot;
		cfd_inputs_row(buffer->quals, slot, context, buffer->rows);
	}
	cfd_buffer_add(buffer, slot);
}

/* Adds a row of the child, and perhaps those after it on its page. */
static void
cfd_scan_add_rows(CfdScanState *state, CfdBuffer *buffer, TupleTableSlot *slot)
{
	PlanState  *child = linitial(state->css.custom_ps);

	if (state->stored == NULL ||
		cfd_stored_take(state->stored, child, slot, state->batch_rows - buffer->rows) == 0)
	{
		cfd_scan_add_row(state, buffer, slot);
		return;
	}
	if (buffer->quals != NULL)
		cfd_inputs_stored(buffer->quals, state->stored, state->inputs_context, buffer->rows);
	cfd_buffer_add_stored(buffer, state->stored);
}

/* Fills a buffer with rows of the child. False: there are no more. */
static bool
cfd_scan_read_rows(CfdScanState *state, CfdBuffer *buffer)
{
	PlanState  *child = linitial(state->css.custom_ps);

	while (buffer->rows < state->batch_rows && !cfd_buffer_is_full(buffer))
	{
		TupleTableSlot *slot = ExecProcNode(child);

		if (TupIsNull(slot))
			return false;
		cfd_scan_add_rows(state, buffer, slot);
	}
	return true;
}

/* Reads a batch from the child. False: no rows. */
static bool
cfd_scan_read_batch(CfdScanState *state, CfdBuffer *buffer)
{
	cfd_buffer_empty(buffer);
	cfd_buffer_reserve(buffer, state->batch_rows);
	if (state->loop != NULL)
		state->ended = !cfd_pairs_read(state->loop, buffer, state->inputs_context, state->batch_rows);
	else
		state->ended = !cfd_scan_read_rows(state, buffer);
	if (buffer->rows == 0)
		return false;
	state->batches++;
	state->scanned += Max(buffer->rows, buffer->pairs);
	state->batch_rows = Min(state->batch_rows * 2, cfd_batch_rows);
	return true;
}

/* An answer, and how many rows of it are good. */
static const char *
await_rows(CfdScanState *state, CfdRequest *request, int rows, uint32 *good, uint32 *length)
{
	bool		timed = state->css.ss.ps.instrument != NULL;
	instr_time	start;
	instr_time	end;
	const char *answer;

	if (timed)
		INSTR_TIME_SET_CURRENT(start);
	answer = cfd_await(request, length);
	if (timed)
	{
		INSTR_TIME_SET_CURRENT(end);
		INSTR_TIME_ACCUM_DIFF(state->waited, end, start);
	}
	if (*length < 8)
		cfd_violation("answer about a batch is too short");
	*good = cfd_get32(answer);
	*length -= 8;
	if (*good > rows)
		cfd_violation("answer about a batch has too many rows");
	return answer + 8;
}

/* Takes bytes from an answer. */
static const char *
cfd_scan_take(const char **answer, uint32 *length, uint32 bytes)
{
	const char *taken = *answer;

	if (*length < bytes)
		cfd_violation("answer about a batch is too short");
	*answer += bytes;
	*length -= bytes;
	return taken;
}

/* What is left of the answer: the error of the first row that is not good. */
static void
take_error(CfdBuffer *buffer, bool failed, const char *answer, uint32 length)
{
	if (!failed && length != 0)
		cfd_violation("answer about a batch is too long");
	if (!failed)
		return;
	buffer->error = answer;
	buffer->error_length = length;
}

/* What becomes of the last row, of whose pairs some are still to be read. */
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

/* Notes which rows pass, of all or of those that the keeper has told of. */
static void
take_passing(CfdScanState *state, CfdBuffer *buffer)
{
	const char *answer;
	const char *truths;
	uint32		asked = buffer->rows - buffer->decided;
	uint32		good;
	uint32		length;

	buffer->good = buffer->next = 0;
	if (state->filter == NULL)
	{
		for (int row = 0; row < buffer->rows; row++)
			buffer->passing[row] = row;
		buffer->good = buffer->decided = buffer->rows;
		return;
	}
	answer = await_rows(state, &buffer->filter, asked, &good, &length);
	truths = cfd_scan_take(&answer, &length, good);
	for (int row = 0; row < good; row++)
	{
		if (truths[row] == 1)
			buffer->passing[buffer->good++] = buffer->decided + row;
	}
	buffer->decided += good;
	state->bits += good;
	state->removed += good - buffer->good;
	buffer->asked = false;
	/* Without an error the rest is not told of yet. */
	if (good == 0 && length == 0)
		cfd_violation("answer about a batch has no rows");
	if (good == asked || length != 0)
		take_error(buffer, good < asked, answer, length);
	if (buffer->cut && buffer->decided == buffer->rows)
		take_cut(state, buffer);
	if (buffer->good == state->wanted)
		state->wanted = state->wanted < CFD_BATCH_ROWS_MAX ? state->wanted * 2 : 0;
}

/* Has the expressions over the passing rows computed. */
static void
send_project(CfdScanState *state, CfdBuffer *buffer)
{
	unsigned char fixed[CFD_FIXED_EVAL_BATCH] = {0};
	ExprContext *context = state->inputs_context;
	ListCell   *cell;

	for (int i = 0; i < buffer->good; i++)
	{
		cfd_buffer_show(buffer, buffer->passing[i], state->row);
		if (buffer->projected->evaluates)
			ResetExprContext(context);
		context->ecxt_scantuple = state->row;
		cfd_inputs_row(buffer->projected, state->row, context, i);
	}
	resetStringInfo(&state->body);
	cfd_program_message();
	foreach(cell, state->computed)
	{
		unsigned char program[16] = {0};

		cfd_put32(program, cfd_program_handle(lfirst(cell)));
		buffer->first[foreach_current_index(cell)] = cfd_channel.next[CFD_STATEMENT];
		cfd_put64(program + 8, cfd_channel.next[CFD_STATEMENT]);
		cfd_channel.next[CFD_STATEMENT] += buffer->good;
		appendBinaryStringInfo(&state->body, (const char *) program, sizeof(program));
	}
	cfd_put32(fixed, buffer->good);
	cfd_put32(fixed + 4, buffer->projected->count);
	cfd_put32(fixed + 8, list_length(state->computed));
	cfd_inputs_put(buffer->projected, &state->body, 0, buffer->good);
	cfd_request(&buffer->project, CFD_KIND_EVAL_BATCH, fixed, sizeof(fixed),
				state->body.data, state->body.len,
				ANSWER_BYTES + list_length(state->computed) * (buffer->good + sizeof(uint32)));
	state->exchanges++;
	state->values += (uint64) buffer->good * list_length(state->computed);
}

static void
take_projected(CfdScanState *state, CfdBuffer *buffer)
{
	uint32		good;
	uint32		length;
	const char *answer = await_rows(state, &buffer->project, buffer->good, &good, &length);

	for (int i = 0; i < list_length(state->computed); i++)
	{
		bool		some = cfd_get32(cfd_scan_take(&answer, &length, sizeof(uint32))) != 0;

		buffer->computed_nulls[i] = some ? cfd_scan_take(&answer, &length, buffer->good) : NULL;
	}
	/* An error of the quals is in a later row. */
	if (good < buffer->good || length != 0)
		take_error(buffer, good < buffer->good, answer, length);
	buffer->good = good;
}

/* Makes the next batch the current one. False: there is none. */
static bool
cfd_scan_turn(CfdScanState *state)
{
	if (!state->ahead && (state->ended || !cfd_scan_read_batch(state, &state->buffers[1 - state->current])))
		return false;
	state->ahead = false;
	state->current = 1 - state->current;
	return true;
}

/*
 * Has the keeper decide the rest of the current batch, or the next one. False: there is
 * none. The batch after it is read meanwhile, and asked about in advance if all rows are
 * wanted.
 */
static bool
next_rows(CfdScanState *state)
{
	CfdBuffer  *buffer = &state->buffers[state->current];
	CfdBuffer  *other = &state->buffers[1 - state->current];
	bool		project;

	if (buffer->decided < buffer->rows)
	{
		cfd_drop(&buffer->filter);
		cfd_drop(&buffer->project);
	}
	else if (cfd_scan_turn(state))
	{
		buffer = other;
		other = &state->buffers[1 - state->current];
	}
	else
		return false;
	send_filter(state, buffer);
	if (!state->ahead && !state->ended && !buffer->cut &&
		state->batch_rows > Min(AHEAD_ROWS, cfd_batch_rows / 2))
		state->ahead = cfd_scan_read_batch(state, other);
	take_passing(state, buffer);
	project = state->computed != NIL && buffer->good > 0;
	if (project)
		send_project(state, buffer);
	if (state->ahead && state->wanted == 0 && buffer->error == NULL)
		send_filter(state, other);
	if (project)
		take_projected(state, buffer);
	return true;
}

/* ---------- execution ---------- */

/* The next row that passes; NULL at the end. */
static TupleTableSlot *
cfd_scan_next_row(CfdScanState *state)
{
	for (;;)
	{
		CfdBuffer  *buffer = &state->buffers[state->current];

		if (buffer->next < buffer->good)
		{
			int			computed = list_length(state->computed);

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
		if (buffer->error != NULL)
			cfd_raise_error(buffer->error, buffer->error_length);
		CHECK_FOR_INTERRUPTS();
		if (!next_rows(state))
			return NULL;
	}
}

static TupleTableSlot *
exec_scan(CustomScanState *node)
{
	CfdScanState *state = (CfdScanState *) node;
	ExprContext *context = node->ss.ps.ps_ExprContext;

	for (;;)
	{
		TupleTableSlot *row = cfd_scan_next_row(state);

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
cfd_scan_forget_batches(CfdScanState *state)
{
	for (int i = 0; i < 2; i++)
	{
		cfd_buffer_empty(&state->buffers[i]);
		if (state->buffers[i].quals != NULL)
			cfd_inputs_forget_constants(state->buffers[i].quals);
		if (state->buffers[i].projected != NULL)
			cfd_inputs_forget_constants(state->buffers[i].projected);
	}
	/* What comes after a scan that was read to its end will be, too, and is about as long. */
	state->batch_rows = Min(CFD_BATCH_FIRST_ROWS, cfd_batch_rows);
	if (state->ended)
		state->batch_rows = Max(state->batch_rows, Min(state->scanned + state->scanned / 4, cfd_batch_rows));
	state->scanned = 0;
	state->ahead = state->ended = false;
	state->wanted = state->ends_early ? 1 : 0;
}

static void
cfd_scan_rescan(CustomScanState *node)
{
	PlanState  *child = linitial(node->custom_ps);

	cfd_scan_forget_batches((CfdScanState *) node);
	if (node->ss.ps.chgParam != NULL)
		UpdateChangedParamSet(child, node->ss.ps.chgParam);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

static void
end_scan(CustomScanState *node)
{
	cfd_scan_forget_batches((CfdScanState *) node);
	ExecEndNode(linitial(node->custom_ps));
}

/* ---------- EXPLAIN ---------- */

/* Name of the table's column behind a column of the child. */
static const char *
column_name(EState *estate, List *columns, AttrNumber number)
{
	TargetEntry *entry = list_nth(columns, number - 1);
	Var		   *var = (Var *) entry->expr;

	if (!IsA(var, Var) || IS_SPECIAL_VARNO(var->varno))
		return "expression";
	return get_attname(exec_rt_fetch(var->varno, estate)->relid, var->varattno, false);
}

static void
explain_inputs(CfdScanState *state, const CfdCompiler *compiler, List *columns, ExplainState *es)
{
	EState	   *estate = state->css.ss.ps.state;
	List	   *inputs = NIL;

	for (int i = 0; i < compiler->count; i++)
	{
		const CfdInput *input = &compiler->inputs[i];

		if (IsA(input->expr, Var))
			inputs = lappend(inputs, psprintf("#%d %s", i + 1, column_name(estate, columns, ((Var *) input->expr)->varattno)));
		else if (!input->constant)
			inputs = lappend(inputs, psprintf("#%d expression", i + 1));
	}
	ExplainPropertyList("Inputs", inputs, es);
}

/* The quals as SQL has them. */
static void
explain_quals(CustomScanState *node, List *ancestors, ExplainState *es)
{
	Plan	   *plan = node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, plan, ancestors);
	Node	   *all = (Node *) make_ands_explicit(((CustomScan *) plan)->custom_exprs);
	bool		prefix = list_length(es->rtable) > 1 || es->verbose;

	ExplainPropertyText("Protected Filter", deparse_expression(all, context, prefix, false), es);
}

static void
explain_counters(CfdScanState *state, ExplainState *es)
{
	ExplainPropertyUInteger("Batches", NULL, state->batches, es);
	ExplainPropertyUInteger("Exchanges", NULL, state->exchanges, es);
	if (state->filter != NULL)
	{
		ExplainPropertyUInteger("Rows Removed by Program", NULL, state->removed, es);
		ExplainPropertyUInteger("Bits Declassified", NULL, state->bits, es);
	}
	if (state->computed != NIL)
		ExplainPropertyUInteger("Values Computed", NULL, state->values, es);
	if (es->timing)
		ExplainPropertyFloat("Time Waited", "ms", INSTR_TIME_GET_MILLISEC(state->waited), 3, es);
}

static void
explain_scan(CustomScanState *node, List *ancestors, ExplainState *es)
{
	CfdScanState *state = (CfdScanState *) node;
	List	   *columns = ((CustomScan *) node->ss.ps.plan)->custom_scan_tlist;
	ListCell   *cell;

	if (state->filter != NULL)
	{
		explain_quals(node, ancestors, es);
		ExplainPropertyText("Program", state->filter->text, es);
		explain_inputs(state, state->qual_inputs, columns, es);
	}
	foreach(cell, state->computed)
		ExplainPropertyText("Output Program", ((CfdProgram *) lfirst(cell))->text, es);
	if (es->analyze)
		explain_counters(state, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "ConfideScan",
	.BeginCustomScan = begin_scan,
	.ExecCustomScan = exec_scan,
	.EndCustomScan = end_scan,
	.ReScanCustomScan = cfd_scan_rescan,
	.ExplainCustomScan = explain_scan,
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
