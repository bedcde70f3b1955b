/*
 * rows.c
 *	  Copies of the rows of one batch; see rows.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "batch/rows.h"
#include "executor/executor.h"

/*
 * The slots live in the current memory context, which must be the executor's
 * per-query context.
 */
void
cfd_rows_init(CfdRows *rows, const CustomScanState *node, int room)
{
	rows->node = node;
	rows->room = Max(room, 1);
	rows->slots = palloc0(rows->room * sizeof(TupleTableSlot *));
	rows->made = 0;
	rows->bytes = 0;
}

bool
cfd_rows_add(CfdRows *rows, int index, TupleTableSlot *row)
{
	TupleDesc	desc = rows->node->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	TupleTableSlot *slot;

	if (index == rows->made)
	{
		MemoryContext before = MemoryContextSwitchTo(rows->node->ss.ps.state->es_query_cxt);

		rows->slots[rows->made++] = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
		MemoryContextSwitchTo(before);
	}
	if (index == 0)
		rows->bytes = 0;
	slot = rows->slots[index];
	ExecCopySlot(slot, row);
	rows->bytes += heap_compute_data_size(desc, slot->tts_values, slot->tts_isnull);
	return rows->bytes < CFD_ROWS_BYTES_MAX && index + 1 < rows->room;
}

void
cfd_rows_end(CfdRows *rows)
{
	for (int i = 0; i < rows->made; i++)
		ExecDropSingleTupleTableSlot(rows->slots[i]);
}
