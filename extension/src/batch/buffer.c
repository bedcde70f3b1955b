/*
 * buffer.c
 *	  A batch of rows: see buffer.h.
 *
 * Invariant: as in buffer.h.
 */
#include "postgres.h"

#include "batch/buffer.h"
#include "utils/datum.h"
#include "utils/memutils.h"

/* A batch of long values ends early. */
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
	return MemoryContextMemAllocated(buffer->referred, false) > REFERRED_BYTES;
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
	MemoryContextReset(buffer->referred);
}
