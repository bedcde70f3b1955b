/*
 * inputs.c
 *	  Input columns of programs; see inputs.h.
 *
 * In page mode a heap scan has a list of the page's visible tuples, holds the
 * page's pin until it is called again, and records its position in the list.
 * Hence reading ahead means reading the list and advancing that position.
 *
 * Invariants: as in inputs.h; 0 always stands for NULL.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "batch/inputs.h"
#include "catalog/pg_type.h"
#include "cell/cell.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "session/channel.h"
#include "soft/soft.h"
#include "storage/bufmgr.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "value/types.h"
#include "wire/columns.h"

/* Size of a CPU cache line. If lines are longer, some are requested twice. */
#define LINE_BYTES 64

CfdStored *
cfd_stored_create(int last_attribute)
{
	CfdStored  *stored = palloc0(sizeof(CfdStored));

	stored->last_attribute = last_attribute;
	stored->offsets = palloc(Max(last_attribute, 1) * sizeof(int));
	return stored;
}

static void
cfd_stored_describe(CfdStored *stored, TupleDesc desc)
{
	int			offset = 0;

	stored->described = desc;
	stored->fixed = 0;
	for (int i = 0; i < Min(desc->natts, stored->last_attribute); i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (attribute->attlen <= 0 || !attribute->attbyval)
			return;
		offset = att_align_nominal(offset, attribute->attalign);
		stored->offsets[i] = offset;
		stored->fixed = i + 1;
		offset += attribute->attlen;
	}
}

/* Adds a row. Returns false if it does not have the expected form. */
static inline bool
cfd_stored_add(CfdStored *stored, HeapTupleHeader tuple)
{
	if ((tuple->t_infomask & HEAP_HASNULL) != 0 ||
		HeapTupleHeaderGetNatts(tuple) < stored->last_attribute)
		return false;
	stored->rows[stored->count++] = (const char *) tuple + tuple->t_hoff;
	return true;
}

/* The heap scan below, if the child returns exactly what it reads; otherwise NULL. */
static HeapScanDesc
plain_scan(PlanState *child)
{
	TableScanDesc scan;

	if (!IsA(child, SeqScanState) || child->qual != NULL || child->ps_ProjInfo != NULL ||
		child->state->es_epq_active != NULL || !ScanDirectionIsForward(child->state->es_direction))
		return NULL;
	scan = ((SeqScanState *) child)->ss.ss_currentScanDesc;
	if (scan == NULL || (scan->rs_flags & SO_ALLOW_PAGEMODE) == 0 ||
		scan->rs_rd->rd_tableam->scan_getnextslot != heap_getnextslot)
		return NULL;
	return (HeapScanDesc) scan;
}

/*
 * Prefetches a whole page into the CPU cache. Without this, each row would
 * wait for memory several times, which took more than half of a scan's time.
 */
static void
prefetch(Page page)
{
	for (int at = ((PageHeader) page)->pd_upper; at < BLCKSZ; at += LINE_BYTES)
		__builtin_prefetch(page + at);
}

static void
take_page(CfdStored *stored, PlanState *child, int most)
{
	HeapScanDesc scan = plain_scan(child);
	Page		page;
	int			before = stored->count;

	if (scan == NULL || !BufferIsValid(scan->rs_cbuf))
		return;
	page = BufferGetPage(scan->rs_cbuf);
	if (scan->rs_cindex == 0)
		prefetch(page);
	while (stored->count < most && (int) scan->rs_cindex + 1 < (int) scan->rs_ntuples)
	{
		ItemId		item = PageGetItemId(page, scan->rs_vistuples[scan->rs_cindex + 1]);

		if (!cfd_stored_add(stored, (HeapTupleHeader) PageGetItem(page, item)))
			break;
		scan->rs_cindex++;
	}
	/* Statistics must count these rows as well. */
	for (int i = before; i < stored->count; i++)
		pgstat_count_heap_getnext(scan->rs_base.rs_rd);
	if (child->instrument != NULL)
		child->instrument->tuplecount += stored->count - before;
}

int
cfd_stored_take(CfdStored *stored, PlanState *child, TupleTableSlot *slot, int most)
{
	HeapTuple	tuple;

	if (!TTS_IS_BUFFERTUPLE(slot))
		return 0;
	if (unlikely(stored->described != slot->tts_tupleDescriptor))
		cfd_stored_describe(stored, slot->tts_tupleDescriptor);
	tuple = ((HeapTupleTableSlot *) slot)->tuple;
	stored->count = 0;
	if (stored->fixed < stored->last_attribute || tuple == NULL || !cfd_stored_add(stored, tuple->t_data))
		return 0;
	take_page(stored, child, Min(most, MaxHeapTuplesPerPage));
	return stored->count;
}

void
cfd_stored_fids(const CfdStored *stored, AttrNumber attribute, CfdFid *out)
{
	int			offset = stored->offsets[attribute - 1];
	bool		invalid = false;

	for (int i = 0; i < stored->count; i++)
	{
		out[i] = *(const CfdFid *) (stored->rows[i] + offset);
		invalid |= out[i] == 0;
	}
	if (unlikely(invalid))
		cfd_invalid_fid();
}

void
cfd_stored_datums(const CfdStored *stored, AttrNumber attribute, Datum *out)
{
	int			offset = stored->offsets[attribute - 1];
	int			length = TupleDescAttr(stored->described, attribute - 1)->attlen;

	if (length == sizeof(Datum))
	{
		for (int i = 0; i < stored->count; i++)
			out[i] = *(const Datum *) (stored->rows[i] + offset);
		return;
	}
	for (int i = 0; i < stored->count; i++)
		out[i] = fetch_att(stored->rows[i] + offset, true, length);
}

void
cfd_stored_bools(const CfdStored *stored, AttrNumber attribute, unsigned char *out)
{
	int			offset = stored->offsets[attribute - 1];

	for (int i = 0; i < stored->count; i++)
		out[i] = *(const bool *) (stored->rows[i] + offset) ? 1 : 0;
}

CfdInputs *
cfd_inputs_create(const CfdCompiler *compiler, PlanState *parent)
{
	CfdInputs  *inputs = palloc0(sizeof(CfdInputs));

	inputs->context = CurrentMemoryContext;
	inputs->count = compiler->count;
	inputs->columns = palloc0(Max(compiler->count, 1) * sizeof(CfdInputColumn));
	for (int i = 0; i < compiler->count; i++)
	{
		CfdInputColumn *column = &inputs->columns[i];
		const CfdInput *input = &compiler->inputs[i];

		column->type = input->type;
		column->constant = input->constant;
		column->list = input->list;
		column->cell = input->cell;
		if (column->cell && !column->constant)
			column->cells = cfd_cells_create();
		if (IsA(input->expr, Var))
		{
			column->attribute = ((Var *) input->expr)->varattno;
			inputs->last_attribute = Max(inputs->last_attribute, column->attribute);
		}
		else
		{
			column->state = ExecInitExpr((Expr *) input->expr, parent);
			inputs->evaluates |= !column->constant;
		}
		if (column->constant)
		{
			column->fids = palloc0(sizeof(CfdFid));
			column->bools = palloc0(1);
		}
	}
	return inputs;
}

void
cfd_inputs_reserve(CfdInputs *inputs, int rows)
{
	MemoryContext old = MemoryContextSwitchTo(inputs->context);

	for (int i = 0; rows > inputs->capacity && i < inputs->count; i++)
	{
		CfdInputColumn *column = &inputs->columns[i];

		if (column->constant)
			continue;
		if (column->cells != NULL)
			cfd_cells_reserve(column->cells, rows);
		else if (column->type == 0)
			column->bools = column->bools == NULL ? palloc(rows) : repalloc(column->bools, rows);
		else
			column->fids = column->fids == NULL ? palloc(rows * sizeof(CfdFid))
				: repalloc(column->fids, rows * sizeof(CfdFid));
	}
	inputs->capacity = Max(inputs->capacity, rows);
	MemoryContextSwitchTo(old);
}

void
cfd_inputs_forget_constants(CfdInputs *inputs)
{
	inputs->constants_known = false;
}

static CfdFid
cfd_input_opened(struct varlena *cell, uint8 type)
{
	uint32		sealed = cfd_soft_sealed_bytes(cell);

	return sealed != 0 ? cfd_cell_open_bytes(VARDATA_ANY(cell), sealed, type) : cfd_cell_open(NULL, cell, type);
}

static inline void
store(CfdInputColumn *column, int row, Datum value, bool isnull)
{
	if (column->cells != NULL)
		cfd_cells_store(column->cells, row, value, isnull);
	else if (column->type == 0)
		column->bools[row] = isnull ? 2 : DatumGetBool(value) ? 1 : 0;
	else if (isnull)
		column->fids[row] = 0;
	else if (column->cell)
		column->fids[row] = cfd_input_opened(PG_DETOAST_DATUM_PACKED(value), column->type);
	else
	{
		column->fids[row] = DatumGetUInt64(value);
		if (unlikely(column->fids[row] == 0))
			cfd_invalid_fid();
	}
}

static void
evaluate(CfdInputColumn *column, ExprContext *context, int row)
{
	bool		isnull;
	Datum		value = ExecEvalExprSwitchContext(column->state, context, &isnull);

	store(column, row, value, isnull);
}

/*
 * Evaluates a list for all rows. A NULL array becomes one NULL element, which
 * is equivalent.
 */
static void
evaluate_list(CfdInputs *inputs, CfdInputColumn *column, ExprContext *context)
{
	bool		isnull;
	Datum		array = ExecEvalExprSwitchContext(column->state, context, &isnull);
	Datum	   *values;
	bool	   *nulls;

	column->elements = 1;
	if (isnull)
	{
		column->fids[0] = 0;
		return;
	}
	deconstruct_array(DatumGetArrayTypeP(array), ARR_ELEMTYPE(DatumGetArrayTypeP(array)), sizeof(CfdFid), true,
					  TYPALIGN_DOUBLE, &values, &nulls, &column->elements);
	if (column->elements > CFD_ROWS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("list of protected values has more than %d elements", CFD_ROWS_MAX)));
	pfree(column->fids);
	column->fids = MemoryContextAlloc(inputs->context, Max(column->elements, 1) * sizeof(CfdFid));
	for (int i = 0; i < column->elements; i++)
		store(column, i, values[i], nulls[i]);
	pfree(values);
	pfree(nulls);
}

static void
cfd_inputs_evaluate_constants(CfdInputs *inputs, ExprContext *context)
{
	for (int i = 0; i < inputs->count; i++)
	{
		if (inputs->columns[i].list)
			evaluate_list(inputs, &inputs->columns[i], context);
		else if (inputs->columns[i].constant)
			evaluate(&inputs->columns[i], context, 0);
	}
	inputs->constants_known = true;
}

void
cfd_inputs_row(CfdInputs *inputs, TupleTableSlot *slot, ExprContext *context, int row)
{
	if (unlikely(!inputs->constants_known))
		cfd_inputs_evaluate_constants(inputs, context);
	for (int i = 0; i < inputs->count; i++)
	{
		CfdInputColumn *column = &inputs->columns[i];

		if (column->attribute > 0)
			store(column, row, slot->tts_values[column->attribute - 1],
				  slot->tts_isnull[column->attribute - 1]);
		else if (!column->constant)
			evaluate(column, context, row);
	}
}

void
cfd_inputs_stored(CfdInputs *inputs, const CfdStored *stored, ExprContext *context, int row)
{
	if (unlikely(!inputs->constants_known))
		cfd_inputs_evaluate_constants(inputs, context);
	for (int i = 0; i < inputs->count; i++)
	{
		CfdInputColumn *column = &inputs->columns[i];

		if (column->attribute > 0 && column->type == 0)
			cfd_stored_bools(stored, column->attribute, column->bools + row);
		else if (column->attribute > 0)
			cfd_stored_fids(stored, column->attribute, column->fids + row);
	}
}

void
cfd_inputs_empty(CfdInputs *inputs)
{
	for (int i = 0; i < inputs->count; i++)
	{
		if (inputs->columns[i].cells != NULL)
			inputs->columns[i].cells->bytes.len = 0;
	}
}

Size
cfd_inputs_bytes(const CfdInputs *inputs)
{
	Size		bytes = 0;

	for (int i = 0; i < inputs->count; i++)
	{
		if (inputs->columns[i].cells != NULL)
			bytes += inputs->columns[i].cells->bytes.len;
	}
	return bytes;
}

static void
put_constant_bool(StringInfo body, unsigned char value, int rows)
{
	unsigned char *all = palloc(Max(rows, 1));

	memset(all, value, rows);
	cfd_put_bools(body, all, rows);
	pfree(all);
}

void
cfd_inputs_put(const CfdInputs *inputs, StringInfo body, int from, int rows)
{
	for (int i = 0; i < inputs->count; i++)
	{
		const CfdInputColumn *column = &inputs->columns[i];

		if (column->cells != NULL)
			cfd_cells_put(column->cells, body, from, rows);
		else if (column->list)
			cfd_put_values(body, column->fids, column->elements);
		else if (column->constant && column->type == 0)
			put_constant_bool(body, column->bools[0], rows);
		else if (column->constant)
			cfd_put_constant(body, column->fids[0], rows);
		else if (column->type == 0)
			cfd_put_bools(body, column->bools + from, rows);
		else
			cfd_put_column(body, column->fids + from, rows);
	}
}
