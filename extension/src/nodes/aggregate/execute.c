/*
 * execute.c
 *	  Aggregation in the keeper, executed: see aggregate.h.
 *
 * Rows of the child become columns; each full batch is a one-way message, so the
 * child's next rows are read while the keeper works. At the end groups are fetched,
 * some at a time. Where the keeper has no room for all groups it hands back the
 * rows of those that are left out; they wait in a tuplestore and are the input of
 * another pass.
 *
 * Invariants: nothing that the keeper sends is believed without a check of its form;
 * each row is aggregated in exactly one pass.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "channel/channel.h"
#include "channel/columns.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/aggregate/aggregate.h"
#include "nodes/nodeFuncs.h"
#include "nodes/stored.h"
#include "ops/evaluate.h"
#include "planner/compile.h"
#include "types/types.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"
#include "utils/tuplestore.h"

#define BATCH_ROWS 4096
#define FETCH_GROUPS 1024
/* Rows before the keeper is first asked whether it has rows to hand back. */
#define FIRST_ALLOWANCE (16 * BATCH_ROWS)
#define FLAG_MORE 1
#define FLAG_RETURNED 2

typedef enum Form
{
	FORM_FID,
	FORM_CONSTANT,				/* one FID for all rows */
	FORM_BOOL,					/* plain boolean */
	FORM_RAW
} Form;

/* An input column. */
typedef struct Column
{
	Form		form;
	uint8		type;			/* type code; 0 if it is not protected */
	int			attribute;		/* of the child's rows; 0: an expression */
	Expr	   *expr;
	ExprState  *state;
	bool		null_only;		/* a raw value of which only NULL matters */
	CfdFid	   *values;
	unsigned char *nulls;		/* raw: 0, 1; booleans: 0, 1, or 2 for NULL */
	CfdFid		constant;
} Column;

/* What an expression of the registration is: a program, or a column by itself. */
typedef struct Source
{
	CfdProgram *program;
	int			column;
} Source;

/* A column of what is fetched. */
typedef struct Output
{
	bool		raw;			/* NULLs stand beside the values */
	bool		count;
	bool		stored;			/* takes a slot */
} Output;

typedef struct AggregateState
{
	CustomScanState css;
	CfdCompiler *compiler;
	CfdCompiler *having_compiler;
	CfdProgram *having;
	CfdProgram *filter;
	List	   *sources;		/* of Source */
	List	   *key_sources;	/* numbers of sources */
	List	   *calls;			/* lists: number, distinct, argument's source or -1, filter's or -1 */
	Column	   *columns;
	int			column_count;
	int			program_columns;	/* the first ones are the programs' inputs */
	Output	   *outputs;
	int			output_count;
	int			stored;
	int			last_attribute;
	bool		evaluates;		/* some column is an expression */
	CfdStored  *as_stored;		/* rows as they are stored; NULL: from slots only */

	uint32		handle;
	uint32		generation;		/* of the connection the handle is from; 0: none */
	bool		filled;
	bool		done;
	int			rows;			/* of the batch that is being made */
	uint64		allowance;
	Tuplestorestate *input;		/* rows of this pass, if it is not the first */
	Tuplestorestate *left;		/* rows for the next pass */
	TupleTableSlot *stored_slot;
	StringInfoData body;
	char	   *groups;			/* fetched ones, column by column */
	int			group_count;
	int			group;
	uint32		flags;

	/* for EXPLAIN ANALYZE */
	uint64		total_rows;
	uint64		total_batches;
	uint64		total_groups;
	uint64		total_bytes;
	int			passes;
	instr_time	waited;
} AggregateState;

/* ---------- what to send: columns, programs ---------- */

static Column *
add_column(AggregateState *state, Column column)
{
	for (int i = 0; i < state->column_count; i++)
	{
		Column	   *other = &state->columns[i];

		if (other->form == column.form && other->null_only == column.null_only &&
			equal(other->expr, column.expr))
			return other;
	}
	if (state->column_count == CFD_COLUMNS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many columns in an aggregation of protected values"),
				 errhint("Set confide.enable_batch_aggregate to off.")));
	state->columns[state->column_count] = column;
	return &state->columns[state->column_count++];
}

static uint8
stored_type(Oid type)
{
	uint8		code = cfd_type_code(type);

	return code == CFD_TYPE_VARCHAR ? CFD_TYPE_TEXT : code;
}

/* A source for an expression, for now with columns that are not numbered yet. */
static int
add_source(AggregateState *state, CfdProgram *program, int column)
{
	Source	   *source;
	ListCell   *cell;

	foreach(cell, state->sources)
	{
		source = lfirst(cell);
		if (program == NULL ? source->program == NULL && source->column == column
			: source->program != NULL && source->program->instructions == program->instructions &&
			memcmp(source->program->code, program->code, program->instructions * 8) == 0)
			return foreach_current_index(cell);
	}
	source = palloc0(sizeof(Source));
	source->program = program;
	source->column = column;
	state->sources = lappend(state->sources, source);
	return list_length(state->sources) - 1;
}

/* What has no program becomes a column by itself, once the programs' inputs are known. */
typedef struct Pending
{
	Node	   *expr;
	CfdProgram *program;
	bool		null_only;
} Pending;

static Pending *
prepare(AggregateState *state, Node *expr, bool null_only)
{
	Pending    *pending = palloc0(sizeof(Pending));

	pending->expr = expr;
	pending->program = cfd_compile(state->compiler, expr);
	pending->null_only = null_only;
	return pending;
}

static int
resolve(AggregateState *state, Pending *pending)
{
	Column		column = {.expr = (Expr *) pending->expr};

	if (pending->program != NULL)
		return add_source(state, pending->program, -1);
	column.type = stored_type(exprType(pending->expr));
	column.form = column.type == 0 ? FORM_RAW
		: IsA(pending->expr, Const) || IsA(pending->expr, Param) ? FORM_CONSTANT : FORM_FID;
	column.null_only = column.type == 0 && pending->null_only;
	return add_source(state, NULL, add_column(state, column) - state->columns);
}

/* Programs share their inputs, which come first among the columns. */
static void
take_inputs(AggregateState *state)
{
	for (int i = 0; i < state->compiler->count; i++)
	{
		CfdInput   *input = &state->compiler->inputs[i];
		Column		column = {.expr = input->expr,.type = input->type};

		column.form = input->type == 0 ? FORM_BOOL : input->constant ? FORM_CONSTANT : FORM_FID;
		state->columns[state->column_count++] = column;
	}
	state->program_columns = state->column_count;
}

static void
describe(AggregateState *state, CustomScan *plan)
{
	List	   *keys = list_nth(plan->custom_private, CFD_AGG_KEYS);
	List	   *calls = list_nth(plan->custom_private, CFD_AGG_CALLS);
	List	   *quals = list_nth(plan->custom_private, CFD_AGG_QUALS);
	List	   *pending = NIL;
	ListCell   *cell;
	int			next = 0;

	state->compiler = cfd_compiler();
	state->columns = palloc0(CFD_COLUMNS_MAX * sizeof(Column));
	foreach(cell, keys)
		pending = lappend(pending, prepare(state, lfirst(cell), false));
	foreach(cell, calls)
	{
		List	   *call = lfirst_node(List, cell);
		bool		null_only = intVal(linitial(call)) == 0 && !intVal(lsecond(call));

		for (int i = 2; i < 4; i++)
			pending = lappend(pending, list_nth(call, i) == NULL ? NULL
							  : prepare(state, list_nth(call, i), i == 2 && null_only));
	}
	if (quals != NIL)
		state->filter = cfd_compile_quals(state->compiler, quals);
	if (quals != NIL && state->filter == NULL)
		elog(ERROR, "confide: the quals of an aggregation cannot be compiled");
	take_inputs(state);
	foreach(cell, keys)
		state->key_sources = lappend_int(state->key_sources, resolve(state, list_nth(pending, next++)));
	foreach(cell, calls)
	{
		List	   *call = lfirst_node(List, cell);
		Pending    *argument = list_nth(pending, next++);
		Pending    *filter = list_nth(pending, next++);

		state->calls = lappend(state->calls,
							   list_make4_int(intVal(linitial(call)), intVal(lsecond(call)),
											  argument == NULL ? -1 : resolve(state, argument),
											  filter == NULL ? -1 : resolve(state, filter)));
	}
}

static void
describe_outputs(AggregateState *state)
{
	ListCell   *cell;
	Output	   *output;

	state->output_count = list_length(state->key_sources) + list_length(state->calls);
	output = state->outputs = palloc0(Max(state->output_count, 1) * sizeof(Output));
	foreach(cell, state->key_sources)
	{
		Source	   *source = list_nth(state->sources, lfirst_int(cell));

		output->stored = source->program != NULL;
		output->raw = source->program == NULL && state->columns[source->column].type == 0;
		state->stored += output->stored;
		output++;
	}
	foreach(cell, state->calls)
	{
		output->count = linitial_int((List *) lfirst(cell)) == 0;
		output->stored = !output->count;
		state->stored += output->stored;
		output++;
	}
}

/* ---------- begin and end ---------- */

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	AggregateState *state = (AggregateState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	PlanState  *child = ExecInitNode(linitial(plan->custom_plans), estate, eflags);
	List	   *having = list_nth(plan->custom_private, CFD_AGG_HAVING);

	node->custom_ps = list_make1(child);
	describe(state, plan);
	describe_outputs(state);
	if (having != NIL)
	{
		state->having_compiler = cfd_compiler();
		state->having = cfd_compile_quals(state->having_compiler, having);
		if (state->having == NULL)
			elog(ERROR, "confide: the condition on groups cannot be compiled");
	}
	for (int i = 0; i < state->column_count; i++)
	{
		Column	   *column = &state->columns[i];

		if (IsA(column->expr, Var) && ((Var *) column->expr)->varno == OUTER_VAR &&
			((Var *) column->expr)->varattno > 0)
		{
			column->attribute = ((Var *) column->expr)->varattno;
			state->last_attribute = Max(state->last_attribute, column->attribute);
		}
		else
		{
			column->state = ExecInitExpr(column->expr, &node->ss.ps);
			state->evaluates |= column->form != FORM_CONSTANT;
		}
		if (column->form != FORM_CONSTANT)
		{
			column->values = palloc(BATCH_ROWS * sizeof(CfdFid));
			column->nulls = palloc(BATCH_ROWS);
		}
	}
	if (!state->evaluates)
		state->as_stored = cfd_stored_create(state->last_attribute);
	initStringInfo(&state->body);
}

static void
close_stores(AggregateState *state)
{
	if (state->input != NULL)
		tuplestore_end(state->input);
	if (state->left != NULL)
		tuplestore_end(state->left);
	state->input = state->left = NULL;
}

static void
end(CustomScanState *node)
{
	AggregateState *state = (AggregateState *) node;
	unsigned char body[CFD_FIXED_AGGREGATE_FORGET] = {0};

	/* What is not told now the keeper forgets with the statement's values. */
	cfd_put32(body, state->handle);
	if (state->generation != 0 && state->generation == cfd_channel.generation)
		cfd_try_send(CFD_KIND_AGGREGATE_FORGET, body, sizeof(body));
	state->generation = 0;
	close_stores(state);
	ExecEndNode(linitial(node->custom_ps));
}

/* ---------- registration ---------- */

static void
put16(StringInfo body, int value)
{
	uint16		bytes = (uint16) value;

	appendBinaryStringInfo(body, (const char *) &bytes, sizeof(bytes));
}

static void
put32(StringInfo body, uint32 value)
{
	appendBinaryStringInfo(body, (const char *) &value, sizeof(value));
}

static void
put_source(AggregateState *state, StringInfo body, const Source *source)
{
	if (source->program == NULL)
	{
		put32(body, 0);
		put16(body, 1);
		put16(body, source->column);
		return;
	}
	put32(body, cfd_program_handle(source->program));
	put16(body, state->program_columns);
	for (int i = 0; i < state->program_columns; i++)
		put16(body, i);
}

static void
put_having(AggregateState *state, StringInfo body)
{
	int			constants = 0;

	if (state->having == NULL)
	{
		put32(body, 0);
		put16(body, 0);
		return;
	}
	put32(body, cfd_program_handle(state->having));
	put16(body, state->having_compiler->count);
	for (int i = 0; i < state->having_compiler->count; i++)
	{
		CfdInput   *input = &state->having_compiler->inputs[i];

		if (input->constant)
			put16(body, CFD_AGGREGATION_CONSTANT + constants++);
		else
			put16(body, ((Var *) input->expr)->varattno - 1);
	}
}

static void
put_registration(AggregateState *state, StringInfo body)
{
	int			filter = state->filter == NULL ? CFD_AGGREGATION_NONE
		: add_source(state, state->filter, -1);
	uint64		limit = (uint64) cfd_aggregate_memory * 1024;
	ListCell   *cell;

	put16(body, state->column_count);
	put16(body, list_length(state->sources));
	put16(body, list_length(state->key_sources));
	put16(body, list_length(state->calls));
	put16(body, filter);
	appendBinaryStringInfo(body, "\0\0\0\0\0\0", 6);
	appendBinaryStringInfo(body, (const char *) &limit, sizeof(limit));
	for (int i = 0; i < state->column_count; i++)
		appendStringInfoChar(body, state->columns[i].type);
	foreach(cell, state->sources)
		put_source(state, body, lfirst(cell));
	foreach(cell, state->key_sources)
		put16(body, lfirst_int(cell));
	foreach(cell, state->calls)
	{
		List	   *call = lfirst(cell);

		put16(body, linitial_int(call));
		put16(body, lthird_int(call));	/* -1 is NONE */
		put16(body, lfourth_int(call));
		put16(body, lsecond_int(call) ? CFD_AGGREGATION_DISTINCT : 0);
	}
	put_having(state, body);
}

static const char *
call_keeper(AggregateState *state, uint16 kind, const void *body, uint32 length, uint32 *answer_length)
{
	instr_time	from;
	instr_time	to;
	const char *answer;

	if (state->css.ss.ps.instrument == NULL)
		return cfd_call(kind, body, length, NULL, 0, answer_length);
	INSTR_TIME_SET_CURRENT(from);
	answer = cfd_call(kind, body, length, NULL, 0, answer_length);
	INSTR_TIME_SET_CURRENT(to);
	INSTR_TIME_ACCUM_DIFF(state->waited, to, from);
	return answer;
}

static void
tell_handle(AggregateState *state, uint16 kind)
{
	unsigned char body[CFD_FIXED_AGGREGATE_RESET] = {0};

	cfd_put32(body, state->handle);
	cfd_send(kind, body, sizeof(body), NULL, 0);
}

/* The keeper's aggregation, empty. */
static void
open_aggregation(AggregateState *state)
{
	const char *answer;
	uint32		length;

	cfd_begin();
	if (state->generation == cfd_channel.generation)
	{
		tell_handle(state, CFD_KIND_AGGREGATE_RESET);
		return;
	}
	/* Programs first: their registration uses the channel, too. */
	resetStringInfo(&state->body);
	put_registration(state, &state->body);
	answer = call_keeper(state, CFD_KIND_AGGREGATE_REGISTER, state->body.data, state->body.len, &length);
	if (length != sizeof(uint32))
		cfd_violation("handle of an aggregation has the wrong length");
	state->handle = cfd_get32(answer);
	state->generation = cfd_channel.generation;
}

/* ---------- rows ---------- */

static inline CfdFid
fid_of(Datum value, bool isnull)
{
	CfdFid		fid = isnull ? 0 : DatumGetUInt64(value);

	if (unlikely(fid == 0 && !isnull))
		cfd_invalid_fid();
	return fid;
}

static inline void
put_value(Column *column, int row, Datum value, bool isnull)
{
	switch (column->form)
	{
		case FORM_FID:
			column->values[row] = fid_of(value, isnull);
			break;
		case FORM_BOOL:
			column->nulls[row] = isnull ? 2 : DatumGetBool(value);
			break;
		case FORM_RAW:
			column->values[row] = isnull || column->null_only ? 0 : (uint64) value;
			column->nulls[row] = isnull;
			break;
		case FORM_CONSTANT:
			break;
	}
}

static void
evaluate_constants(AggregateState *state)
{
	ExprContext *context = state->css.ss.ps.ps_ExprContext;

	for (int i = 0; i < state->column_count; i++)
	{
		Column	   *column = &state->columns[i];
		bool		isnull;
		Datum		value;

		if (column->form != FORM_CONSTANT)
			continue;
		value = ExecEvalExprSwitchContext(column->state, context, &isnull);
		column->constant = fid_of(value, isnull);
	}
}

/* Appends rows as they are stored. */
static void
add_stored(AggregateState *state)
{
	const CfdStored *stored = state->as_stored;

	for (int i = 0; i < state->column_count; i++)
	{
		Column	   *column = &state->columns[i];

		if (column->form == FORM_FID)
			cfd_stored_fids(stored, column->attribute, column->values + state->rows);
		else if (column->form == FORM_BOOL)
			cfd_stored_bools(stored, column->attribute, column->nulls + state->rows);
		else if (column->form == FORM_RAW)
		{
			if (column->null_only)
				memset(column->values + state->rows, 0, stored->count * sizeof(CfdFid));
			else
				cfd_stored_datums(stored, column->attribute, column->values + state->rows);
			memset(column->nulls + state->rows, 0, stored->count);
		}
	}
	state->rows += stored->count;
}

/* Appends a row of the child to the batch, and perhaps those after it on its page. */
static void
add_row(AggregateState *state, TupleTableSlot *slot)
{
	ExprContext *context = state->css.ss.ps.ps_ExprContext;
	int			row;

	if (state->as_stored != NULL &&
		cfd_stored_take(state->as_stored, linitial(state->css.custom_ps), slot, BATCH_ROWS - state->rows) > 0)
	{
		add_stored(state);
		return;
	}
	row = state->rows++;
	slot_getsomeattrs(slot, state->last_attribute);
	context->ecxt_outertuple = slot;
	for (int i = 0; i < state->column_count; i++)
	{
		Column	   *column = &state->columns[i];

		if (likely(column->attribute > 0))
			put_value(column, row, slot->tts_values[column->attribute - 1],
					  slot->tts_isnull[column->attribute - 1]);
		else if (column->form != FORM_CONSTANT)
		{
			bool		isnull;
			Datum		value = ExecEvalExprSwitchContext(column->state, context, &isnull);

			put_value(column, row, value, isnull);
		}
	}
}

/* Appends a row that the keeper handed back. */
static void
add_stored_row(AggregateState *state, TupleTableSlot *slot)
{
	int			row = state->rows++;

	slot_getallattrs(slot);
	for (int i = 0; i < state->column_count; i++)
		put_value(&state->columns[i], row, slot->tts_values[i], slot->tts_isnull[i]);
}

static void
put_raw(StringInfo body, const Column *column, int rows)
{
	put32(body, CFD_COLUMN_RAW);
	put32(body, rows);
	appendBinaryStringInfo(body, (const char *) column->values, rows * sizeof(CfdFid));
	appendBinaryStringInfo(body, (const char *) column->nulls, rows);
}

static void
put_column(StringInfo body, const Column *column, int rows)
{
	switch (column->form)
	{
		case FORM_FID:
			cfd_put_column(body, column->values, rows);
			break;
		case FORM_CONSTANT:
			cfd_put_constant(body, column->constant, rows);
			break;
		case FORM_BOOL:
			cfd_put_bools(body, column->nulls, rows);
			break;
		case FORM_RAW:
			put_raw(body, column, rows);
			break;
	}
}

/* Slot and description of rows that wait for another pass. */
static void
prepare_store(AggregateState *state)
{
	TupleDesc	desc;

	if (state->stored_slot != NULL)
		return;
	desc = CreateTemplateTupleDesc(state->column_count);
	for (int i = 0; i < state->column_count; i++)
		TupleDescInitEntry(desc, i + 1, NULL, INT8OID, -1, 0);
	state->stored_slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
}

/* One column of rows that the keeper hands back; how many bytes it has. */
static const char *
returned_column(const Column *column, const char *at, uint32 rows, const char *end)
{
	uint64		bytes = (uint64) rows * (column->type == 0 ? 9 : 8);

	if (bytes > (uint64) (end - at))
		cfd_violation("rows handed back are too short");
	return at + bytes;
}

static void
store_returned(AggregateState *state, const char *at, uint32 rows, const char *end)
{
	const char **columns = palloc(state->column_count * sizeof(char *));
	Datum	   *values = palloc(state->column_count * sizeof(Datum));
	bool	   *nulls = palloc(state->column_count * sizeof(bool));

	for (int i = 0; i < state->column_count; i++)
	{
		columns[i] = at;
		at = returned_column(&state->columns[i], at, rows, end);
	}
	for (uint32 row = 0; row < rows; row++)
	{
		for (int i = 0; i < state->column_count; i++)
		{
			values[i] = UInt64GetDatum(cfd_get64(columns[i] + row * 8));
			nulls[i] = state->columns[i].type == 0 ? columns[i][rows * 8 + row] != 0 : values[i] == 0;
		}
		tuplestore_putvalues(state->left, state->stored_slot->tts_tupleDescriptor, values, nulls);
	}
	pfree(columns);
	pfree(values);
	pfree(nulls);
}

/* Takes the rows that found no room, and how many may be sent before the next time. */
static void
take_back(AggregateState *state)
{
	unsigned char body[CFD_FIXED_AGGREGATE_RETURN] = {0};
	bool		more = true;
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);

	cfd_put32(body, state->handle);
	while (more)
	{
		uint32		length;
		const char *answer = call_keeper(state, CFD_KIND_AGGREGATE_RETURN, body, sizeof(body), &length);

		if (length < 16)
			cfd_violation("rows handed back are too short");
		state->allowance = Max(cfd_get64(answer), BATCH_ROWS);
		more = cfd_get32(answer + 12) != 0;
		if (cfd_get32(answer + 8) == 0)
			break;
		if (state->left == NULL)
		{
			prepare_store(state);
			state->left = tuplestore_begin_heap(false, false, work_mem);
		}
		store_returned(state, answer + 16, cfd_get32(answer + 8), answer + length);
		CHECK_FOR_INTERRUPTS();
	}
	MemoryContextSwitchTo(old);
}

static void
send_batch(AggregateState *state)
{
	unsigned char fixed[CFD_FIXED_AGGREGATE_ROWS];
	instr_time	from;
	instr_time	to;

	if (state->rows == 0)
		return;
	resetStringInfo(&state->body);
	for (int i = 0; i < state->column_count; i++)
		put_column(&state->body, &state->columns[i], state->rows);
	cfd_put32(fixed, state->handle);
	cfd_put32(fixed + 4, state->rows);
	if (state->generation != cfd_channel.generation)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("Confide's keeper was restarted during the statement")));
	INSTR_TIME_SET_ZERO(from);
	if (state->css.ss.ps.instrument != NULL)
		INSTR_TIME_SET_CURRENT(from);
	cfd_send(CFD_KIND_AGGREGATE_ROWS, fixed, sizeof(fixed), state->body.data, state->body.len);
	if (state->css.ss.ps.instrument != NULL)
	{
		INSTR_TIME_SET_CURRENT(to);
		INSTR_TIME_ACCUM_DIFF(state->waited, to, from);
	}
	state->total_batches++;
	state->total_rows += state->rows;
	state->total_bytes += state->body.len;
	if (state->allowance <= state->rows)
		take_back(state);
	else
		state->allowance -= state->rows;
	state->rows = 0;
}

/* Sends all rows of this pass. */
static void
fill(AggregateState *state)
{
	ExprContext *context = state->css.ss.ps.ps_ExprContext;
	PlanState  *child = linitial(state->css.custom_ps);

	open_aggregation(state);
	state->allowance = FIRST_ALLOWANCE;
	state->rows = 0;
	if (state->passes++ == 0)
		evaluate_constants(state);
	for (;;)
	{
		if (state->input != NULL)
		{
			if (!tuplestore_gettupleslot(state->input, true, false, state->stored_slot))
				break;
			add_stored_row(state, state->stored_slot);
		}
		else
		{
			TupleTableSlot *slot = ExecProcNode(child);

			if (TupIsNull(slot))
				break;
			add_row(state, slot);
			/* What expressions allocated, a row's at a time. */
			if (state->evaluates)
				ResetExprContext(context);
		}
		if (state->rows == BATCH_ROWS)
		{
			CHECK_FOR_INTERRUPTS();
			send_batch(state);
		}
	}
	send_batch(state);
	if (state->input != NULL)
		tuplestore_end(state->input);
	state->input = NULL;
	state->filled = true;
	state->flags = FLAG_MORE;
	state->group = state->group_count = 0;
}

/* ---------- groups ---------- */

static uint64
output_bytes(const AggregateState *state, uint64 groups)
{
	uint64		bytes = 0;

	for (int i = 0; i < state->output_count; i++)
		bytes += groups * (state->outputs[i].raw ? 9 : 8);
	return bytes;
}

static void
put_having_constants(AggregateState *state, StringInfo body)
{
	if (state->having == NULL)
		return;
	for (int i = 0; i < state->having_compiler->count; i++)
	{
		CfdInput   *input = &state->having_compiler->inputs[i];
		ExprState  *expr;
		Datum		value;
		bool		isnull;
		CfdFid		fid;

		if (!input->constant)
			continue;
		expr = ExecInitExpr(input->expr, &state->css.ss.ps);
		value = ExecEvalExprSwitchContext(expr, state->css.ss.ps.ps_ExprContext, &isnull);
		fid = fid_of(value, isnull);
		appendBinaryStringInfo(body, (const char *) &fid, sizeof(fid));
	}
}

static void
fetch(AggregateState *state)
{
	unsigned char fixed[CFD_FIXED_AGGREGATE_FETCH];
	const char *answer;
	uint32		length;
	uint32		groups;

	resetStringInfo(&state->body);
	enlargeStringInfo(&state->body, sizeof(fixed));
	state->body.len = sizeof(fixed);
	put_having_constants(state, &state->body);
	cfd_begin();
	cfd_put32(fixed, state->handle);
	cfd_put32(fixed + 4, FETCH_GROUPS);
	cfd_put64(fixed + 8, cfd_channel.next[CFD_STATEMENT]);
	cfd_channel.next[CFD_STATEMENT] += (uint64) FETCH_GROUPS * state->stored;
	memcpy(state->body.data, fixed, sizeof(fixed));
	answer = call_keeper(state, CFD_KIND_AGGREGATE_FETCH, state->body.data, state->body.len, &length);
	if (length < 16)
		cfd_violation("groups are too short");
	groups = cfd_get32(answer);
	state->flags = cfd_get32(answer + 4);
	if (groups > FETCH_GROUPS || length != 16 + output_bytes(state, groups))
		cfd_violation("groups have the wrong length");
	/* Unused slots are given to the next values. */
	cfd_channel.next[CFD_STATEMENT] -= (uint64) (FETCH_GROUPS - groups) * state->stored;
	if (state->groups == NULL)
		state->groups = MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt,
										   output_bytes(state, FETCH_GROUPS) + 1);
	memcpy(state->groups, answer + 16, length - 16);
	state->group_count = groups;
	state->group = 0;
	state->total_groups += groups;
}

/* The next pass, over the rows that found no room; false if there are none. */
static bool
next_pass(AggregateState *state)
{
	if (!(state->flags & FLAG_RETURNED) && state->left == NULL)
		return false;
	take_back(state);
	state->input = state->left;
	state->left = NULL;
	if (state->input == NULL)
		return false;
	fill(state);
	return true;
}

static TupleTableSlot *
put_group(AggregateState *state, TupleTableSlot *slot)
{
	const char *at = state->groups;
	int			group = state->group++;

	ExecClearTuple(slot);
	for (int i = 0; i < state->output_count; i++)
	{
		const Output *output = &state->outputs[i];
		uint64		value = cfd_get64(at + group * 8);

		at += state->group_count * 8;
		slot->tts_values[i] = UInt64GetDatum(value);
		if (output->raw)
		{
			slot->tts_isnull[i] = at[group] != 0;
			at += state->group_count;
		}
		else
			slot->tts_isnull[i] = !output->count && value == 0;
	}
	return ExecStoreVirtualTuple(slot);
}

static TupleTableSlot *
next_group(ScanState *node)
{
	AggregateState *state = (AggregateState *) node;

	if (!state->filled)
		fill(state);
	while (!state->done)
	{
		if (state->group < state->group_count)
			return put_group(state, node->ss_ScanTupleSlot);
		CHECK_FOR_INTERRUPTS();
		if (state->flags & FLAG_MORE)
			fetch(state);
		else if (!next_pass(state))
			state->done = true;
	}
	return ExecClearTuple(node->ss_ScanTupleSlot);
}

static bool
recheck(ScanState *node, TupleTableSlot *slot)
{
	(void) node;
	(void) slot;
	return true;
}

static TupleTableSlot *
execute(CustomScanState *node)
{
	return ExecScan(&node->ss, next_group, recheck);
}

static void
rescan(CustomScanState *node)
{
	AggregateState *state = (AggregateState *) node;
	PlanState  *child = linitial(node->custom_ps);

	close_stores(state);
	state->filled = state->done = false;
	state->group = state->group_count = 0;
	state->passes = 0;
	ExecScanReScan(&node->ss);
	if (node->ss.ps.chgParam != NULL)
		UpdateChangedParamSet(child, node->ss.ps.chgParam);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

/* ---------- EXPLAIN ---------- */

static void
explain_keys(AggregateState *state, List *ancestors, ExplainState *es)
{
	CustomScan *plan = (CustomScan *) state->css.ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, &plan->scan.plan, ancestors);
	List	   *texts = NIL;

	for (int i = 0; i < list_length(state->key_sources); i++)
	{
		TargetEntry *target = list_nth_node(TargetEntry, plan->custom_scan_tlist, i);

		texts = lappend(texts, deparse_expression((Node *) target->expr, context, list_length(es->rtable) > 1 || es->verbose, false));
	}
	if (texts != NIL)
		ExplainPropertyList("Group Key", texts, es);
}

static void
explain_programs(AggregateState *state, ExplainState *es)
{
	List	   *texts = NIL;
	ListCell   *cell;

	foreach(cell, state->sources)
	{
		Source	   *source = lfirst(cell);

		if (source->program != NULL && source->program != state->filter)
			texts = lappend(texts, source->program->text);
	}
	if (state->filter != NULL)
		ExplainPropertyText("Keeper Filter", state->filter->text, es);
	if (texts != NIL && es->verbose)
		ExplainPropertyList("Keeper Programs", texts, es);
	if (state->having != NULL)
		ExplainPropertyText("Keeper Group Filter", state->having->text, es);
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	AggregateState *state = (AggregateState *) node;

	explain_keys(state, ancestors, es);
	explain_programs(state, es);
	if (!es->analyze)
		return;
	ExplainPropertyInteger("Batches", NULL, state->total_batches, es);
	ExplainPropertyInteger("Rows Aggregated", NULL, state->total_rows, es);
	ExplainPropertyInteger("Values", NULL, state->total_rows * state->column_count, es);
	ExplainPropertyInteger("Bytes Sent", NULL, state->total_bytes, es);
	ExplainPropertyInteger("Groups", NULL, state->total_groups, es);
	if (state->passes > 1)
		ExplainPropertyInteger("Passes", NULL, state->passes, es);
	if (es->timing)
		ExplainPropertyFloat("Keeper Wait", "ms", INSTR_TIME_GET_MILLISEC(state->waited), 3, es);
}

static const CustomExecMethods methods = {
	.CustomName = "ConfideAggregate",
	.BeginCustomScan = begin,
	.ExecCustomScan = execute,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.ExplainCustomScan = explain
};

Node *
cfd_aggregate_create_state(CustomScan *plan)
{
	AggregateState *state = palloc0(sizeof(AggregateState));

	(void) plan;
	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &methods;
	return (Node *) state;
}
