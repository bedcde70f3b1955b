/*
 * describe.c
 *	  What an aggregation sends to the keeper: its columns, programs, and
 *	  registration.
 *
 * Invariants: as in state.h.
 */
#include "postgres.h"

#include "session/channel.h"
#include "miscadmin.h"
#include "node/aggregate/state.h"
#include "nodes/nodeFuncs.h"
#include "value/types.h"

static Column *
cfd_describe_add_column(AggregateState *state, Column column)
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
cfd_describe_stored_type(Oid type)
{
	uint8		code = cfd_family_code(type);

	return code == CFD_TYPE_VARCHAR ? CFD_TYPE_TEXT : code;
}

/* Adds a source for an expression. Its columns are not numbered yet. */
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
			memcmp(source->program->code, program->code,
				   program->instructions * sizeof(CfdWireInstruction)) == 0)
			return foreach_current_index(cell);
	}
	source = palloc0(sizeof(Source));
	source->program = program;
	source->column = column;
	state->sources = lappend(state->sources, source);
	return list_length(state->sources) - 1;
}

/*
 * An expression without a program becomes a column, once the inputs of all
 * programs are known.
 */
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
	if (!null_only || cfd_cell_code(exprType(expr)) == 0)
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
	column.type = cfd_describe_stored_type(exprType(pending->expr));
	/* A cell that is only counted is tested for NULL only. */
	if (pending->null_only && cfd_cell_code(exprType(pending->expr)) != 0)
		column.type = 0;
	column.form = column.type == 0 ? FORM_RAW
		: IsA(pending->expr, Const) || IsA(pending->expr, Param) ? FORM_CONSTANT
		: cfd_cell_code(exprType(pending->expr)) != 0 ? FORM_CELL : FORM_FID;
	column.null_only = column.type == 0 && pending->null_only;
	return add_source(state, NULL, cfd_describe_add_column(state, column) - state->columns);
}

/* Programs share their inputs, which are the first columns. */
static void
take_inputs(AggregateState *state)
{
	for (int i = 0; i < state->compiler->count; i++)
	{
		CfdInput   *input = &state->compiler->inputs[i];
		Column		column = {.expr = input->expr,.type = input->type};

		column.form = input->type == 0 ? FORM_BOOL : input->constant ? FORM_CONSTANT : input->cell ? FORM_CELL : FORM_FID;
		state->columns[state->column_count++] = column;
	}
	state->program_columns = state->column_count;
}

static void
describe_outputs(AggregateState *state, const List *keys)
{
	ListCell   *cell;
	Output	   *output;

	state->output_count = list_length(state->key_sources) + list_length(state->calls);
	output = state->outputs = palloc0(Max(state->output_count, 1) * sizeof(Output));
	foreach(cell, state->key_sources)
	{
		Source	   *source = list_nth(state->sources, lfirst_int(cell));

		/* A condition is not a protected value; its truth value is returned. */
		output->raw = source->program == NULL ? state->columns[source->column].type == 0
			: source->program->result == CFD_RESULT_BOOL;
		output->stored = source->program != NULL && !output->raw;
		output->cell = cfd_cell_code(exprType(list_nth(keys, foreach_current_index(cell)))) != 0;
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

void
cfd_aggregate_describe(AggregateState *state, CustomScan *plan)
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
	describe_outputs(state, keys);
}

/* ---------- registration ---------- */

static void
put16(StringInfo body, int value)
{
	uint16		number = (uint16) value;

	appendBinaryStringInfo(body, (const char *) &number, sizeof(number));
}

static void
put_expression(StringInfo body, uint32 program, int inputs)
{
	CfdWireExpression head = {.program = program,.count = inputs};

	appendBinaryStringInfo(body, (const char *) &head, sizeof(head));
}

static void
put_source(AggregateState *state, StringInfo body, const Source *source)
{
	if (source->program == NULL)
	{
		put_expression(body, 0, 1);
		put16(body, source->column);
		return;
	}
	put_expression(body, cfd_program_handle(source->program), state->program_columns);
	for (int i = 0; i < state->program_columns; i++)
		put16(body, i);
}

static void
put_having(AggregateState *state, StringInfo body)
{
	int			constants = 0;

	if (state->having == NULL)
	{
		put_expression(body, 0, 0);
		return;
	}
	put_expression(body, cfd_program_handle(state->having), state->having_compiler->count);
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
	CfdWireAggregateRegister head = {
		.columns = state->column_count,
		.expressions = list_length(state->sources),
		.keys = list_length(state->key_sources),
		.aggregates = list_length(state->calls),
		.filter = filter,
		.share = state->share,
		.limit = (uint64) cfd_aggregate_memory * 1024
	};
	ListCell   *cell;

	appendBinaryStringInfo(body, (const char *) &head, sizeof(head));
	for (int i = 0; i < state->column_count; i++)
		appendStringInfoChar(body, state->columns[i].type);
	foreach(cell, state->sources)
		put_source(state, body, lfirst(cell));
	foreach(cell, state->key_sources)
		put16(body, lfirst_int(cell));
	foreach(cell, state->calls)
	{
		List	   *call = lfirst(cell);

		CfdWireAggregateCall made = {
			.signature = linitial_int(call),
			.argument = lthird_int(call),	/* -1 is NONE */
			.filter = lfourth_int(call),
			.flags = lsecond_int(call) ? CFD_AGGREGATION_DISTINCT : 0
		};

		appendBinaryStringInfo(body, (const char *) &made, sizeof(made));
	}
	put_having(state, body);
}

const char *
cfd_aggregate_call(AggregateState *state, uint16 kind, const void *body, uint32 length, uint32 *answer_length)
{
	instr_time	from;
	instr_time	to;
	const char *answer;

	if (state->css.ss.ps.instrument == NULL)
		return cfd_call(kind, body, length, NULL, 0, answer_length);
	INSTR_TIME_SET_CURRENT(from);
	answer = cfd_call(kind, body, length, NULL, 0, answer_length);
	INSTR_TIME_SET_CURRENT(to);
	INSTR_TIME_ACCUM_DIFF(state->driver.waited, to, from);
	return answer;
}

/*
 * Makes the keeper empty its aggregation. A sleeping keeper is not woken for
 * that: the rows or the fetch will wake it, and before that it would only go
 * back to sleep.
 */
static void
tell_reset(AggregateState *state)
{
	CfdWireAggregateReset body = {.handle = state->handle,.goes_on = state->passes > 0};

	if (!cfd_try_send(CFD_KIND_AGGREGATE_RESET, &body, sizeof(body), false))
		cfd_send(CFD_KIND_AGGREGATE_RESET, &body, sizeof(body), NULL, 0);
}

/* Makes sure that the keeper has an empty aggregation. */
void
cfd_aggregate_open(AggregateState *state)
{
	CfdReadAggregateRegisterAnswer read;
	const char *answer;
	uint32		length;

	cfd_begin();
	if (state->generation == cfd_channel.generation)
	{
		tell_reset(state);
		return;
	}
	/*
	 * Numbering a slot makes sure that the keeper is told of the statement's
	 * end, even after an error.
	 */
	if (state->stage == CFD_AGG_FINAL)
		cfd_new_slot(CFD_STATEMENT);
	/* Programs first, since their registration uses the channel, too. */
	resetStringInfo(&state->body);
	cfd_program_message();
	put_registration(state, &state->body);
	answer = cfd_aggregate_call(state, CFD_KIND_AGGREGATE_REGISTER, state->body.data, state->body.len, &length);
	CFD_DECODE(aggregate_register_answer, answer, length, &read);
	state->handle = read.head.handle;
	state->generation = cfd_channel.generation;
}
