/*
 * inputs.c
 *	  Inputs of programs during execution: see inputs.h.
 *
 * Invariant: as in inputs.h; 0 stands for NULL only.
 */
#include "postgres.h"

#include "wire/columns.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "value/types.h"
#include "batch/inputs.h"
#include "utils/array.h"
#include "utils/memutils.h"

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
		if (column->type == 0)
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

static inline void
store(CfdInputColumn *column, int row, Datum value, bool isnull)
{
	if (column->type == 0)
		column->bools[row] = isnull ? 2 : DatumGetBool(value) ? 1 : 0;
	else if (isnull)
		column->fids[row] = 0;
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

/* The elements of an array; of NULL one that is NULL, which comes to the same. */
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

		if (column->list)
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
