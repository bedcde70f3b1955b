/*
 * beside.c
 *	  Other protected values of the rows that a result shows; see beside.h.
 *
 * The row that a plan has just returned is made of its scans' current rows, if
 * no node between them keeps rows. Below other nodes no scan is looked for.
 *
 * Invariant: as in beside.h.
 */
#include "postgres.h"

#include "result/beside.h"
#include "executor/tuptable.h"
#include "value/types.h"

/* A scan, and the protected columns of its table. */
typedef struct ProtectedScan
{
	ScanState  *state;
	int			columns;
	AttrNumber *numbers;
	uint8	   *types;
} ProtectedScan;

static void
beside_add(CfdBeside *beside, ScanState *state)
{
	TupleDesc	desc = state->ss_ScanTupleSlot->tts_tupleDescriptor;
	ProtectedScan *scan = palloc(sizeof(ProtectedScan));

	scan->state = state;
	scan->columns = 0;
	scan->numbers = palloc(desc->natts * sizeof(AttrNumber));
	scan->types = palloc(desc->natts);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		uint8		type = attribute->attisdropped ? 0 : cfd_type_code(attribute->atttypid);

		if (type == 0)
			continue;
		scan->numbers[scan->columns] = i + 1;
		scan->types[scan->columns++] = type;
	}
	if (scan->columns > 0)
		beside->scans = lappend(beside->scans, scan);
}

static void
beside_find(CfdBeside *beside, PlanState *state)
{
	if (state == NULL)
		return;
	switch (nodeTag(state))
	{
		case T_SeqScanState:
		case T_IndexScanState:
		case T_BitmapHeapScanState:
		case T_TidScanState:
			beside_add(beside, (ScanState *) state);
			break;
		case T_NestLoopState:
			beside_find(beside, innerPlanState(state));
			/* FALLTHROUGH */
		case T_LockRowsState:
		case T_LimitState:
		case T_ResultState:
			beside_find(beside, outerPlanState(state));
			break;
		default:
			break;
	}
}

void
cfd_beside_begin(CfdBeside *beside, PlanState *plan)
{
	beside->scans = NIL;
	beside->values = 0;
	beside_find(beside, plan);
}

static void
note_row(CfdBeside *beside, const ProtectedScan *scan)
{
	TupleTableSlot *slot = scan->state->ss_ScanTupleSlot;

	if (TTS_EMPTY(slot))
		return;
	for (int i = 0; i < scan->columns && beside->values < CFD_BESIDE_MAX; i++)
	{
		bool		is_null;
		Datum		value = slot_getattr(slot, scan->numbers[i], &is_null);

		if (!is_null)
			beside->value[beside->values++] = (CfdWireWanted) {
				.fid = DatumGetUInt64(value),.t = scan->types[i],.form = CFD_DELIVERY_DELIVERY
			};
	}
}

void
cfd_beside_note(CfdBeside *beside)
{
	ListCell   *cell;

	if (beside->values == CFD_BESIDE_MAX)
		return;
	foreach(cell, beside->scans)
		note_row(beside, lfirst(cell));
}
