/*
 * switched.c
 *	  Executes scans with a switch; see switched.h.
 *
 * A change of side takes effect between batches: rows that were read for the
 * keeper are decided by it, also those that were read ahead.
 *
 * Invariant: as in switched.h.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "node/scan/scan.h"
#include "node/scan/switched.h"

/* Rows between two decisions while PostgreSQL evaluates. */
#define DECIDE_ROWS 1024
/* One row in so many is timed. */
#define TIMED_ROWS 64

CfdSwitched *
cfd_switched_begin(CfdScanState *state, const CustomScan *scan)
{
	CfdSwitched *switched = palloc0(sizeof(CfdSwitched));

	switched->work = cfd_work_of_list(cfd_switch_private(scan));
	switched->quals = ExecInitQual(linitial(scan->custom_exprs), &state->css.ss.ps);
	return switched;
}

void
cfd_switched_restart(CfdSwitched *switched)
{
	switched->started = switched->ended = false;
	switched->left = 0;
	switched->spent = 0;
}

void
cfd_switched_clock(instr_time *start)
{
	INSTR_TIME_SET_CURRENT(*start);
}

static double
cfd_switched_since(instr_time start)
{
	instr_time	end;

	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	return INSTR_TIME_GET_DOUBLE(end) * 1e9;
}

void
cfd_switched_spent(CfdSwitched *switched, instr_time start)
{
	switched->spent += cfd_switched_since(start);
}

static void
choose_side(CfdScanState *state, int rows)
{
	CfdSwitched *switched = state->switched;
	CfdSide		before = switched->side;

	if (!switched->started)
		switched->side = cfd_switch_first(&switched->work, rows);
	else
		switched->side = cfd_switch_next(&switched->work, rows, before);
	if (switched->started && switched->side != before)
		switched->switches++;
	switched->started = true;
	/* What was read ahead goes to the keeper. */
	state->driver.reads_ahead = switched->side == CFD_SIDE_KEEPER;
	state->driver.pauses = switched->side == CFD_SIDE_SOFTWARE;
	/*
	 * The program is registered before constants are opened: if one cannot be,
	 * the next answer says so, which must be that about rows.
	 */
	if (switched->side == CFD_SIDE_KEEPER)
	{
		cfd_program_message();
		(void) cfd_program_handle(state->filter);
	}
	switched->left = DECIDE_ROWS;
}

/* ---------- the keeper evaluates ---------- */

void
cfd_switched_decided(CfdScanState *state, int rows)
{
	CfdSwitched *switched = state->switched;

	cfd_switch_took(CFD_SIDE_KEEPER, &switched->work, rows, switched->spent);
	switched->spent = 0;
	cfd_switch_count(CFD_SIDE_KEEPER, rows);
	switched->rows[CFD_SIDE_KEEPER] += rows;
	if (switched->side == CFD_SIDE_KEEPER)
		choose_side(state, rows);
}

/* Whether the driver has neither rows nor batches that were begun. */
static bool
between_batches(const CfdDriver *driver)
{
	const CfdBuffer *buffer = &driver->buffers[driver->current];

	return buffer->next >= buffer->good && !buffer->failed && buffer->decided == buffer->rows && !driver->ahead;
}

/* ---------- PostgreSQL evaluates ---------- */

static bool
passes(CfdScanState *state, TupleTableSlot *row)
{
	CfdSwitched *switched = state->switched;
	ExprContext *context = state->css.ss.ps.ps_ExprContext;
	bool		timed = switched->seen++ % TIMED_ROWS == 0;
	instr_time	start;
	bool		result;

	ResetExprContext(context);
	context->ecxt_scantuple = row;
	if (timed)
		INSTR_TIME_SET_CURRENT(start);
	result = ExecQual(switched->quals, context);
	if (timed)
		cfd_switch_took(CFD_SIDE_SOFTWARE, &switched->work, 1, Max(cfd_switched_since(start) - cfd_soft_costs()->clock, 0));
	switched->rows[CFD_SIDE_SOFTWARE]++;
	if (!result)
		switched->removed++;
	return result;
}

void
cfd_switched_decide(CfdScanState *state, CfdBuffer *buffer)
{
	int			rows = buffer->rows - buffer->decided;

	for (int row = buffer->decided; row < buffer->rows; row++)
	{
		cfd_buffer_show(buffer, row, state->row);
		if (passes(state, ExecStoreVirtualTuple(state->row)))
			buffer->passing[buffer->good++] = row;
	}
	buffer->decided = buffer->rows;
	cfd_switch_count(CFD_SIDE_SOFTWARE, rows);
}

/* Shows a row of the child, whose columns are those of the node's rows. */
static TupleTableSlot *
cfd_switched_shown(CfdScanState *state, TupleTableSlot *row)
{
	int			columns = row->tts_tupleDescriptor->natts;

	slot_getallattrs(row);
	ExecClearTuple(state->row);
	memcpy(state->row->tts_values, row->tts_values, columns * sizeof(Datum));
	memcpy(state->row->tts_isnull, row->tts_isnull, columns * sizeof(bool));
	return ExecStoreVirtualTuple(state->row);
}

static TupleTableSlot *
next_from_child(CfdScanState *state)
{
	CfdSwitched *switched = state->switched;

	while (switched->left > 0)
	{
		TupleTableSlot *row = ExecProcNode(state->driver.child);

		CHECK_FOR_INTERRUPTS();
		if (TupIsNull(row))
		{
			switched->ended = true;
			cfd_switch_count(CFD_SIDE_SOFTWARE, DECIDE_ROWS - switched->left);
			return NULL;
		}
		if (--switched->left == 0)
			cfd_switch_count(CFD_SIDE_SOFTWARE, DECIDE_ROWS);
		row = cfd_switched_shown(state, row);
		if (passes(state, row))
			return row;
	}
	return NULL;
}

/* ---------- rows ---------- */

TupleTableSlot *
cfd_switched_next(CfdScanState *state)
{
	CfdSwitched *switched = state->switched;
	CfdDriver  *driver = &state->driver;
	TupleTableSlot *row;

	if (!switched->started)
		choose_side(state, DECIDE_ROWS);
	while (!switched->ended)
	{
		if (switched->side == CFD_SIDE_SOFTWARE && between_batches(driver))
		{
			if (driver->ended)
				return NULL;
			row = next_from_child(state);
			if (row != NULL)
				return row;
			if (!switched->ended)
				choose_side(state, DECIDE_ROWS);
			continue;
		}
		row = cfd_scan_next_row(state);
		/* It ends where the rows do, or where the side has changed. */
		if (row != NULL || (driver->ended && between_batches(driver)))
			return row;
	}
	return NULL;
}
