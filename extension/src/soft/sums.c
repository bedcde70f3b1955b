/*
 * sums.c
 *	  sum() and avg() of the family soft_. Adds masked values and records
 *	  which masks the sum contains, as runs of consecutive identifiers.
 *
 * Invariant: a sum contains the masks of all its rows, each as often as its
 * row.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "lib/stringinfo.h"
#include "soft/soft.h"

/* Identifiers from first to last, one row each. */
typedef struct Run
{
	uint64		first;
	uint64		last;
} Run;

typedef struct Sum
{
	uint8		head[CFD_SOFT_HEADER_BYTES];	/* header of the first value */
	uint64		count;
	uint128 value;
	Run		   *runs;
	int			used;
	int			room;
} Sum;

typedef struct Mask
{
	uint64		number;
	int64		weight;
} Mask;

static void
append(Sum *sum, uint64 identifier)
{
	if (sum->used > 0 && sum->runs[sum->used - 1].last + 1 == identifier)
	{
		sum->runs[sum->used - 1].last = identifier;
		return;
	}
	if (sum->used == sum->room)
	{
		sum->room *= 2;
		sum->runs = repalloc_huge(sum->runs, sum->room * sizeof(Run));
	}
	sum->runs[sum->used++] = (Run) {identifier, identifier};
}

static Sum *
new_sum(MemoryContext context, const CfdSoft *value)
{
	Sum		   *sum = MemoryContextAllocZero(context, sizeof(Sum));

	sum->room = 16;
	sum->runs = MemoryContextAlloc(context, sum->room * sizeof(Run));
	sum->head[1] = value->type;
	sum->head[2] = CFD_SOFT_ADD;
	sum->head[3] = value->shape;
	memcpy(sum->head + 4, &value->key, sizeof(value->key));
	return sum;
}

PG_FUNCTION_INFO_V1(cfd_soft_add);
Datum
cfd_soft_add(PG_FUNCTION_ARGS)
{
	Sum		   *sum = PG_ARGISNULL(0) ? NULL : (Sum *) PG_GETARG_POINTER(0);
	MemoryContext context;
	CfdSoft		value;
	uint64		identifier;
	uint128 masked;

	if (!AggCheckCallContext(fcinfo, &context))
		elog(ERROR, "aggregate function called in non-aggregate context");
	if (PG_ARGISNULL(1))
	{
		if (sum == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(sum);
	}
	value = cfd_soft_value(PG_GETARG_DATUM(1));
	if (value.add == NULL)
		cfd_soft_missing(&value, CFD_SOFT_ADD);
	if (sum == NULL)
		sum = new_sum(context, &value);
	else
	{
		CfdSoft		first = {.type = sum->head[1],.shape = sum->head[3]};

		memcpy(&first.key, sum->head + 4, sizeof(first.key));
		cfd_soft_alike(&first, &value);
	}
	memcpy(&identifier, value.add, sizeof(identifier));
	memcpy(&masked, value.add + sizeof(identifier), sizeof(masked));
	sum->value += masked;
	sum->count++;
	append(sum, identifier);
	PG_RETURN_POINTER(sum);
}

static int
by_number(const void *a, const void *b)
{
	uint64		x = ((const Mask *) a)->number;
	uint64		y = ((const Mask *) b)->number;

	return x < y ? -1 : x > y;
}

/*
 * Appends the masks in order of their numbers. A run contributes its last one
 * with weight 1 and the one before its first with weight -1.
 */
static void
append_masks(StringInfo out, const Sum *sum)
{
	Size		count = (Size) sum->used * 2;
	Mask	   *masks = palloc_extended(count * sizeof(Mask), MCXT_ALLOC_HUGE);

	for (int i = 0; i < sum->used; i++)
	{
		masks[2 * i] = (Mask) {sum->runs[i].first - 1, -1};
		masks[2 * i + 1] = (Mask) {sum->runs[i].last, 1};
	}
	qsort(masks, count, sizeof(Mask), by_number);
	for (Size i = 0; i < count;)
	{
		Mask		mask = masks[i++];

		while (i < count && masks[i].number == mask.number)
			mask.weight += masks[i++].weight;
		if (mask.weight != 0)
			appendBinaryStringInfo(out, (char *) &mask, sizeof(mask));
	}
	pfree(masks);
}

static Datum
soft_finish(FunctionCallInfo fcinfo, uint8 kind)
{
	Sum		   *sum = PG_ARGISNULL(0) ? NULL : (Sum *) PG_GETARG_POINTER(0);
	StringInfoData out;
	static const char length[VARHDRSZ];

	if (sum == NULL)
		PG_RETURN_NULL();
	initStringInfo(&out);
	appendBinaryStringInfo(&out, length, VARHDRSZ);
	appendBinaryStringInfo(&out, (char *) sum->head, sizeof(sum->head));
	out.data[VARHDRSZ] = kind;
	appendBinaryStringInfo(&out, (char *) &sum->count, sizeof(sum->count));
	appendBinaryStringInfo(&out, (char *) &sum->value, sizeof(sum->value));
	append_masks(&out, sum);
	SET_VARSIZE(out.data, out.len);
	PG_RETURN_POINTER(out.data);
}

PG_FUNCTION_INFO_V1(cfd_soft_sum);
Datum
cfd_soft_sum(PG_FUNCTION_ARGS)
{
	return soft_finish(fcinfo, CFD_SOFT_SUM);
}

PG_FUNCTION_INFO_V1(cfd_soft_average);
Datum
cfd_soft_average(PG_FUNCTION_ARGS)
{
	return soft_finish(fcinfo, CFD_SOFT_AVERAGE);
}
