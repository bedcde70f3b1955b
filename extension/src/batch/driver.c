/*
 * driver.c
 *	  The batch driver; see driver.h.
 *
 * Invariants: as in driver.h.
 */
#include "postgres.h"

#include "batch/driver.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "session/error.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "wire/columns.h"

/* A batch whose values take more memory ends early, in bytes. */
#define REFERRED_BYTES (4 * 1024 * 1024)

void
cfd_buffer_init(CfdBuffer *buffer, int columns, const bool *kept, int computed)
{
	memset(buffer, 0, sizeof(*buffer));
	buffer->columns = columns;
	buffer->kept = kept;
	buffer->own = CurrentMemoryContext;
	buffer->referred = AllocSetContextCreate(CurrentMemoryContext, "confide batch", ALLOCSET_DEFAULT_SIZES);
	buffer->values = palloc0(columns * sizeof(Datum *));
	buffer->nulls = palloc0(columns * sizeof(bool *));
	buffer->first = palloc0(Max(computed, 1) * sizeof(CfdFid));
	buffer->computed_nulls = palloc0(Max(computed, 1) * sizeof(char *));
	cfd_request_init(&buffer->filter);
	cfd_request_init(&buffer->project);
}

static void *
grown(void *array, Size size)
{
	return array == NULL ? palloc(size) : repalloc(array, size);
}

void
cfd_buffer_reserve(CfdBuffer *buffer, int rows)
{
	MemoryContext old;

	if (rows <= buffer->capacity)
		return;
	old = MemoryContextSwitchTo(buffer->own);
	for (int i = 0; i < buffer->columns; i++)
	{
		if (!buffer->kept[i])
			continue;
		buffer->values[i] = grown(buffer->values[i], rows * sizeof(Datum));
		buffer->nulls[i] = grown(buffer->nulls[i], rows * sizeof(bool));
	}
	buffer->passing = grown(buffer->passing, rows * sizeof(int));
	if (buffer->paired)
		buffer->ends = grown(buffer->ends, rows * sizeof(int));
	buffer->capacity = rows;
	MemoryContextSwitchTo(old);
	if (buffer->quals != NULL)
		cfd_inputs_reserve(buffer->quals, rows);
	if (buffer->projected != NULL)
		cfd_inputs_reserve(buffer->projected, rows);
}

void
cfd_buffer_add(CfdBuffer *buffer, TupleTableSlot *slot)
{
	int			row = buffer->rows;

	for (int i = 0; i < buffer->columns; i++)
	{
		Form_pg_attribute attribute;

		if (!buffer->kept[i])
			continue;
		attribute = TupleDescAttr(slot->tts_tupleDescriptor, i);
		buffer->nulls[i][row] = slot->tts_isnull[i];
		if (attribute->attbyval || slot->tts_isnull[i])
			buffer->values[i][row] = slot->tts_values[i];
		else
		{
			MemoryContext old = MemoryContextSwitchTo(buffer->referred);

			buffer->values[i][row] = datumCopy(slot->tts_values[i], false, attribute->attlen);
			MemoryContextSwitchTo(old);
		}
	}
	buffer->rows++;
}

void
cfd_buffer_add_stored(CfdBuffer *buffer, const CfdStored *stored)
{
	for (int i = 0; i < buffer->columns; i++)
	{
		if (!buffer->kept[i])
			continue;
		cfd_stored_datums(stored, i + 1, buffer->values[i] + buffer->rows);
		memset(buffer->nulls[i] + buffer->rows, false, stored->count);
	}
	buffer->rows += stored->count;
}

int
cfd_buffer_pairs_before(const CfdBuffer *buffer, int row)
{
	return row == 0 ? 0 : buffer->ends[row - 1];
}

void
cfd_buffer_show(const CfdBuffer *buffer, int row, TupleTableSlot *slot)
{
	ExecClearTuple(slot);
	for (int i = 0; i < buffer->columns; i++)
	{
		if (buffer->kept[i])
		{
			slot->tts_values[i] = buffer->values[i][row];
			slot->tts_isnull[i] = buffer->nulls[i][row];
		}
		else
			slot->tts_isnull[i] = true;
	}
}

bool
cfd_buffer_is_full(const CfdBuffer *buffer)
{
	return MemoryContextMemAllocated(buffer->referred, false) > REFERRED_BYTES ||
		(buffer->quals != NULL && cfd_inputs_bytes(buffer->quals) > CFD_CELLS_BYTES);
}

void
cfd_buffer_empty(CfdBuffer *buffer)
{
	cfd_drop(&buffer->filter);
	cfd_drop(&buffer->project);
	buffer->asked = false;
	buffer->rows = buffer->pairs = buffer->decided = buffer->good = buffer->next = 0;
	buffer->cut = false;
	buffer->failed = false;
	if (buffer->quals != NULL)
		cfd_inputs_empty(buffer->quals);
	if (buffer->projected != NULL)
		cfd_inputs_empty(buffer->projected);
	MemoryContextReset(buffer->referred);
}

/* Smaller batches are not read ahead, in rows. */
#define AHEAD_ROWS 512

void
cfd_driver_begin(CfdDriver *driver)
{
	const CfdInputs *quals = driver->buffers[0].quals;

	driver->context = CreateExprContext(driver->node->state);
	if (driver->methods->add != NULL ? driver->methods->add_stored != NULL : quals == NULL || !quals->evaluates)
		driver->stored = cfd_stored_create(driver->last_attribute);
	driver->batch_rows = Min(driver->first_rows, cfd_batch_rows);
	initStringInfo(&driver->body);
	INSTR_TIME_SET_ZERO(driver->waited);
}

/* ---------- reading ---------- */

static bool
add_row(CfdDriver *driver, CfdBuffer *buffer, TupleTableSlot *slot)
{
	ExprContext *context = driver->context;

	if (driver->methods->add != NULL)
		return driver->methods->add(driver, buffer, slot);
	slot_getsomeattrs(slot, driver->last_attribute);
	if (buffer->quals != NULL)
	{
		if (buffer->quals->evaluates)
			ResetExprContext(context);
		context->ecxt_scantuple = slot;
		cfd_inputs_row(buffer->quals, slot, context, buffer->rows);
	}
	cfd_buffer_add(buffer, slot);
	return true;
}

/*
 * Adds a row, and possibly those that follow on its page. Returns false if the
 * batch is full.
 */
static bool
add_rows(CfdDriver *driver, CfdBuffer *buffer, TupleTableSlot *slot)
{
	if (driver->stored == NULL ||
		cfd_stored_take(driver->stored, driver->child, slot, driver->batch_rows - buffer->rows) == 0)
		return add_row(driver, buffer, slot);
	if (driver->methods->add_stored != NULL)
	{
		driver->methods->add_stored(driver, buffer);
		return true;
	}
	if (buffer->quals != NULL)
		cfd_inputs_stored(buffer->quals, driver->stored, driver->context, buffer->rows);
	cfd_buffer_add_stored(buffer, driver->stored);
	return true;
}

/* Fills a buffer row by row. Returns false if there are no more rows. */
static bool
read_rows(CfdDriver *driver, CfdBuffer *buffer)
{
	while (buffer->rows < driver->batch_rows && !cfd_buffer_is_full(buffer))
	{
		TupleTableSlot *slot = driver->methods->next != NULL ? driver->methods->next(driver)
			: ExecProcNode(driver->child);

		if (TupIsNull(slot))
			return false;
		if (!add_rows(driver, buffer, slot))
			break;
	}
	return true;
}

/* Reads a batch. Returns false if there are no rows. */
static bool
read_batch(CfdDriver *driver, CfdBuffer *buffer)
{
	cfd_buffer_empty(buffer);
	cfd_buffer_reserve(buffer, driver->batch_rows);
	if (driver->methods->read != NULL)
		driver->ended = !driver->methods->read(driver, buffer);
	else
		driver->ended = !read_rows(driver, buffer);
	if (buffer->rows == 0)
		return false;
	driver->batches++;
	driver->scanned += Max(buffer->rows, buffer->pairs);
	driver->batch_rows = Min(driver->batch_rows * 2, cfd_batch_rows);
	return true;
}

/* ---------- switching buffers ---------- */

/* Makes the next batch the current one. Returns false if there is none. */
static bool
turn(CfdDriver *driver)
{
	if (!driver->ahead && (driver->ended || !read_batch(driver, &driver->buffers[1 - driver->current])))
		return false;
	driver->ahead = false;
	driver->current = 1 - driver->current;
	return true;
}

static void
ask(CfdDriver *driver, CfdBuffer *buffer)
{
	if (!buffer->asked)
		driver->methods->ask(driver, buffer);
}

/*
 * Has the keeper decide the rest of the current batch, or the next one.
 * Returns false if there is none. Meanwhile the following batch is read and,
 * if all rows are wanted, asked about in advance.
 */
static bool
decide(CfdDriver *driver)
{
	CfdBuffer  *buffer = &driver->buffers[driver->current];
	CfdBuffer  *other;

	if (buffer->decided < buffer->rows)
	{
		cfd_drop(&buffer->filter);
		cfd_drop(&buffer->project);
	}
	else if (!turn(driver))
		return false;
	buffer = &driver->buffers[driver->current];
	other = &driver->buffers[1 - driver->current];
	ask(driver, buffer);
	if (driver->reads_ahead && !driver->ahead && !driver->ended && !buffer->cut &&
		driver->batch_rows > Min(AHEAD_ROWS, cfd_batch_rows / 2))
		driver->ahead = read_batch(driver, other);
	driver->methods->take(driver, buffer);
	if (driver->ahead && driver->asks_ahead && !buffer->failed)
		ask(driver, other);
	if (driver->methods->finish != NULL)
		driver->methods->finish(driver, buffer);
	return true;
}

CfdBuffer *
cfd_driver_more(CfdDriver *driver)
{
	for (;;)
	{
		CfdBuffer  *buffer = &driver->buffers[driver->current];

		if (buffer->next < buffer->good)
			return buffer;
		if (buffer->failed)
			cfd_raise(&buffer->error);
		CHECK_FOR_INTERRUPTS();
		if (driver->pauses && buffer->decided == buffer->rows && !driver->ahead)
			return NULL;
		if (!decide(driver))
			return NULL;
	}
}

void
cfd_driver_drain(CfdDriver *driver)
{
	while (cfd_driver_next(driver) != NULL)
		;
}

void
cfd_driver_restart(CfdDriver *driver, bool alike)
{
	for (int i = 0; i < 2; i++)
	{
		CfdBuffer  *buffer = &driver->buffers[i];

		cfd_buffer_empty(buffer);
		if (buffer->quals != NULL)
			cfd_inputs_forget_constants(buffer->quals);
		if (buffer->projected != NULL)
			cfd_inputs_forget_constants(buffer->projected);
	}
	driver->batch_rows = Min(driver->first_rows, cfd_batch_rows);
	if (driver->ended && alike)
		driver->batch_rows = Max(driver->batch_rows, Min(driver->scanned + driver->scanned / 4, cfd_batch_rows));
	driver->scanned = 0;
	driver->ahead = driver->ended = false;
}

/* ---------- answers ---------- */

const char *
cfd_driver_await(CfdDriver *driver, CfdRequest *request, uint32 *length)
{
	bool		timed = driver->node->instrument != NULL;
	instr_time	start;
	instr_time	end;
	const char *answer;

	if (timed)
		INSTR_TIME_SET_CURRENT(start);
	answer = cfd_await(request, length);
	if (timed)
	{
		INSTR_TIME_SET_CURRENT(end);
		INSTR_TIME_ACCUM_DIFF(driver->waited, end, start);
	}
	return answer;
}

CfdReadRevealed
cfd_driver_await_revealed(CfdDriver *driver, CfdRequest *request, uint32 rows, uint32 width)
{
	CfdReadRevealed read;
	uint32		length;
	const char *answer = cfd_driver_await(driver, request, &length);

	CFD_DECODE(revealed, answer, length, &read);
	if (read.head.good > rows || read.head.width != width || (read.head.good == rows && read.has_error))
		cfd_violation("answer about other rows");
	return read;
}
