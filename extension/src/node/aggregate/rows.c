/*
 * rows.c
 *	  Sends the child's rows to the keeper, and handles rows that the
 *	  keeper returns.
 *
 * The batch driver (batch/driver.h) reads rows, which are converted into
 * columns. Each batch is a one-way message, so the child's next rows are read
 * while the keeper works. If the keeper has no room for all groups, it returns
 * the rows of the groups left out. They are stored in a tuplestore and are the
 * input of another pass.
 *
 * Invariants: as in state.h.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "session/channel.h"
#include "wire/columns.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "node/aggregate/state.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

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
		case FORM_CELL:
			cfd_cells_store(column->cells, row, value, isnull);
			break;
		case FORM_CONSTANT:
			break;
	}
}

static void
cfd_aggregate_rows_evaluate_constants(AggregateState *state)
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
		if (!isnull && cfd_cell_code(exprType((Node *) column->expr)) != 0)
			column->constant = cfd_cell_open(NULL, PG_DETOAST_DATUM_PACKED(value), column->type);
		else
			column->constant = fid_of(value, isnull);
	}
}

/* Appends rows in stored form. */
static void
cfd_aggregate_add_stored(CfdDriver *driver, CfdBuffer *buffer)
{
	AggregateState *state = cfd_aggregate_of(driver);
	const CfdStored *stored = driver->stored;
	int			rows = buffer->rows;

	for (int i = 0; i < state->column_count; i++)
	{
		Column	   *column = &state->columns[i];

		if (column->form == FORM_FID)
			cfd_stored_fids(stored, column->attribute, column->values + rows);
		else if (column->form == FORM_BOOL)
			cfd_stored_bools(stored, column->attribute, column->nulls + rows);
		else if (column->form == FORM_RAW)
		{
			if (column->null_only)
				memset(column->values + rows, 0, stored->count * sizeof(CfdFid));
			else
				cfd_stored_datums(stored, column->attribute, column->values + rows);
			memset(column->nulls + rows, 0, stored->count);
		}
	}
	buffer->rows += stored->count;
}

/* Appends a row that the keeper returned. */
static void
add_returned(AggregateState *state, int row, TupleTableSlot *slot)
{
	slot_getallattrs(slot);
	for (int i = 0; i < state->column_count; i++)
		put_value(&state->columns[i], row, slot->tts_values[i], slot->tts_isnull[i]);
}

/* Appends a row of the child. */
static void
add_of_child(AggregateState *state, int row, TupleTableSlot *slot)
{
	ExprContext *context = state->css.ss.ps.ps_ExprContext;

	slot_getsomeattrs(slot, state->driver.last_attribute);
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
	/* Free what the expressions of this row have allocated. */
	if (state->evaluates)
		ResetExprContext(context);
}

static Size
cells_bytes(const AggregateState *state)
{
	Size		bytes = 0;

	for (int i = 0; i < state->column_count; i++)
	{
		if (state->columns[i].cells != NULL)
			bytes += state->columns[i].cells->bytes.len;
	}
	return bytes;
}

static bool
cfd_aggregate_add(CfdDriver *driver, CfdBuffer *buffer, TupleTableSlot *slot)
{
	AggregateState *state = cfd_aggregate_of(driver);
	int			row = buffer->rows++;

	if (state->input != NULL)
		add_returned(state, row, slot);
	else
		add_of_child(state, row, slot);
	return cells_bytes(state) <= CFD_CELLS_BYTES;
}

static void
cfd_aggregate_rows_put_column(StringInfo body, const Column *column, int rows)
{
	switch (column->form)
	{
		case FORM_FID:
			cfd_put_column(body, column->values, rows);
			break;
		case FORM_CELL:
			cfd_cells_put(column->cells, body, 0, rows);
			break;
		case FORM_CONSTANT:
			cfd_put_constant(body, column->constant, rows);
			break;
		case FORM_BOOL:
			cfd_put_bools(body, column->nulls, rows);
			break;
		case FORM_RAW:
			cfd_put_raw(body, column->values, column->nulls, rows);
			break;
	}
}

/* Creates slot and descriptor for rows that wait for another pass. */
static void
prepare_store(AggregateState *state)
{
	TupleDesc	desc;

	if (state->stored_slot != NULL)
		return;
	desc = CreateTemplateTupleDesc(state->column_count);
	for (int i = 0; i < state->column_count; i++)
		TupleDescInitEntry(desc, i + 1, NULL, state->columns[i].form == FORM_CELL ? BYTEAOID : INT8OID, -1, 0);
	state->stored_slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
}

/* Reads one column of the rows that the keeper returns. */
static CfdReadColumn
returned_column(const Column *column, CfdReader *from, uint32 rows)
{
	CfdReadColumn read;

	if (!cfd_read_column(from, rows, &read) ||
		read.head.form != (column->type == 0 ? CFD_COLUMN_RAW :
						   column->form == FORM_CELL ? CFD_COLUMN_CELLS : CFD_COLUMN_LIST))
		cfd_violation("rows handed back have other columns");
	return read;
}

/* Takes the next returned cell. Returns false for NULL. */
static bool
take_cell(CfdReadColumn *column, uint32 row, Datum *cell)
{
	uint32		length = ((const CfdWireU32 *) column->values)[row];

	*cell = 0;
	if (length == 0)
		return false;
	*cell = PointerGetDatum(cstring_to_text_with_len((const char *) column->cells, length));
	column->cells += length;
	return true;
}

/* Stores the rows of an answer. */
void
cfd_aggregate_store(AggregateState *state, const CfdReadAggregateReturnAnswer *answer)
{
	CfdReader	from = answer->columns;
	uint32		rows = answer->head.rows;
	CfdReadColumn *columns = palloc(state->column_count * sizeof(CfdReadColumn));
	Datum	   *values = palloc(state->column_count * sizeof(Datum));
	bool	   *nulls = palloc(state->column_count * sizeof(bool));

	if (state->left == NULL)
	{
		prepare_store(state);
		state->left = tuplestore_begin_heap(false, false, work_mem);
	}
	for (int i = 0; i < state->column_count; i++)
		columns[i] = returned_column(&state->columns[i], &from, rows);
	for (uint32 row = 0; row < rows; row++)
	{
		for (int i = 0; i < state->column_count; i++)
		{
			if (columns[i].cells != NULL)
			{
				nulls[i] = !take_cell(&columns[i], row, &values[i]);
				continue;
			}
			values[i] = UInt64GetDatum(((const CfdWireU64 *) columns[i].values)[row]);
			nulls[i] = columns[i].nulls != NULL ? columns[i].nulls[row] != 0 : values[i] == 0;
		}
		tuplestore_putvalues(state->left, state->stored_slot->tts_tupleDescriptor, values, nulls);
		for (int i = 0; i < state->column_count; i++)
		{
			if (columns[i].cells != NULL && !nulls[i])
				pfree(DatumGetPointer(values[i]));
		}
	}
	pfree(columns);
	pfree(values);
	pfree(nulls);
}

/*
 * Fetches the rows that did not fit, and learns how many may be sent before
 * the next time.
 */
void
cfd_aggregate_take_back(AggregateState *state)
{
	CfdWireAggregateReturn body = {.handle = state->handle};
	bool		more = true;
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);

	while (more)
	{
		CfdReadAggregateReturnAnswer read;
		uint32		length;
		const char *answer = cfd_aggregate_call(state, CFD_KIND_AGGREGATE_RETURN, &body, sizeof(body), &length);

		CFD_DECODE(aggregate_return_answer, answer, length, &read);
		state->allowance = Max(read.head.allowance, CFD_BATCH_ROWS_MAX);
		more = read.head.more != 0;
		if (read.head.rows == 0)
			break;
		if (state->stage == CFD_AGG_PARTIAL)
			cfd_partial_store(state, answer, length);
		else
			cfd_aggregate_store(state, &read);
		CHECK_FOR_INTERRUPTS();
	}
	MemoryContextSwitchTo(old);
}

/*
 * A handle from before a restart of the keeper would name nothing, or another
 * aggregation.
 */
void
cfd_aggregate_check(const AggregateState *state)
{
	if (state->generation != cfd_channel.generation)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("Confide's keeper was restarted during the statement")));
}

/* Sends a batch. */
static void
cfd_aggregate_ask(CfdDriver *driver, CfdBuffer *buffer)
{
	AggregateState *state = cfd_aggregate_of(driver);
	CfdWireAggregateRows fixed = {.handle = state->handle,.rows = buffer->rows};
	instr_time	from;
	instr_time	to;

	resetStringInfo(&driver->body);
	for (int i = 0; i < state->column_count; i++)
		cfd_aggregate_rows_put_column(&driver->body, &state->columns[i], buffer->rows);
	cfd_aggregate_check(state);
	INSTR_TIME_SET_ZERO(from);
	if (driver->node->instrument != NULL)
		INSTR_TIME_SET_CURRENT(from);
	cfd_send_rows(CFD_KIND_AGGREGATE_ROWS, &fixed, sizeof(fixed), driver->body.data, driver->body.len, buffer->rows);
	cfd_after_batch();
	if (driver->node->instrument != NULL)
	{
		INSTR_TIME_SET_CURRENT(to);
		INSTR_TIME_ACCUM_DIFF(driver->waited, to, from);
	}
	state->total_rows += buffer->rows;
	state->total_bytes += driver->body.len;
}

/*
 * Returns no rows. Rows that the keeper has no room for are fetched back from
 * time to time.
 */
static void
cfd_aggregate_take(CfdDriver *driver, CfdBuffer *buffer)
{
	AggregateState *state = cfd_aggregate_of(driver);

	if (state->allowance <= buffer->rows)
		cfd_aggregate_take_back(state);
	else
		state->allowance -= buffer->rows;
	cfd_buffer_swallow(buffer);
}

/* Returns the next row of this pass. */
static TupleTableSlot *
cfd_aggregate_next_input(CfdDriver *driver)
{
	AggregateState *state = cfd_aggregate_of(driver);

	if (state->input != NULL)
		return tuplestore_gettupleslot(state->input, true, false, state->stored_slot) ? state->stored_slot : NULL;
	/* The workers' groups are merged already. */
	return state->stage == CFD_AGG_FINAL ? NULL : ExecProcNode(driver->child);
}

const CfdDriverMethods cfd_aggregate_driver = {
	.ask = cfd_aggregate_ask,
	.take = cfd_aggregate_take,
	.next = cfd_aggregate_next_input,
	.add = cfd_aggregate_add,
};

const CfdDriverMethods cfd_aggregate_stored_driver = {
	.ask = cfd_aggregate_ask,
	.take = cfd_aggregate_take,
	.next = cfd_aggregate_next_input,
	.add = cfd_aggregate_add,
	.add_stored = cfd_aggregate_add_stored,
};

/* Sends all rows of this pass. */
void
cfd_aggregate_fill(AggregateState *state)
{
	cfd_aggregate_open(state);
	state->allowance = FIRST_ALLOWANCE;
	if (state->passes++ == 0)
	{
		cfd_aggregate_rows_evaluate_constants(state);
		if (state->stage == CFD_AGG_FINAL)
			cfd_partial_merge_all(state);
	}
	cfd_driver_restart(&state->driver, false);
	cfd_driver_drain(&state->driver);
	if (state->input != NULL)
		tuplestore_end(state->input);
	state->input = NULL;
	state->filled = true;
	state->flags = CFD_AGGREGATION_MORE;
	state->group = state->group_count = 0;
}
