/*
 * estimate.c
 *	  Estimators: see estimate.h.
 *
 * A histogram's bounds are in order, so the place of a value among them, which
 * PostgreSQL finds by bisection, tells all tests; common values PostgreSQL tests one by one.
 *
 * Invariant: as in estimate.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "channel/channel.h"
#include "nodes/pathnodes.h"
#include "planner/estimate.h"
#include "planner/functions.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/selfuncs.h"

/* Fewer are tested one by one. */
#define TESTS_MIN 2
#define TESTS_MAX CFD_ROWS_MAX

typedef enum Kind
{
	OF_EQUALITY,
	OF_DIFFERENCE,
	OF_RANGE
} Kind;

CfdEstimate cfd_estimate;

bool
cfd_estimate_find(CfdFid value, bool *holds)
{
	CfdEstimate *made = &cfd_estimate;

	/* They are asked for in this order, more or less. */
	for (int i = 0; i < made->count; i++)
	{
		int			at = (made->next + i) % made->count;

		if (made->values[at] != value)
			continue;
		made->next = at + 1;
		if (made->answers[at] != 0 && made->answers[at] != 1)
			return false;
		*holds = made->answers[at] == 1;
		return true;
	}
	return false;
}

/* Adds values of the column's statistics. */
static void
add_values(CfdEstimate *made, HeapTuple statistics, int kind)
{
	AttStatsSlot slot;

	if (!get_attstatsslot(&slot, statistics, kind, InvalidOid, ATTSTATSSLOT_VALUES))
		return;
	made->values = made->values == NULL ? palloc(sizeof(CfdFid) * slot.nvalues) :
		repalloc(made->values, sizeof(CfdFid) * (made->count + slot.nvalues));
	for (int i = 0; i < slot.nvalues && made->count < TESTS_MAX; i++)
		made->values[made->count++] = DatumGetUInt64(slot.values[i]);
	free_attstatsslot(&slot);
}

/* All tests in one exchange. */
static void
make_tests(CfdEstimate *made, const CfdFunction *function)
{
	unsigned char body[CFD_FIXED_DECLASSIFY];
	Size		column = sizeof(CfdFid) * made->count;
	CfdFid	   *fids = palloc(2 * column);
	CfdFid	   *constants = fids + (made->constant_first ? 0 : made->count);
	const char *answer;
	uint32		length;

	memcpy(fids + (made->constant_first ? made->count : 0), made->values, column);
	for (int i = 0; i < made->count; i++)
		constants[i] = made->constant;
	cfd_put32(body, function->signature);
	cfd_put32(body + 4, 0);
	cfd_put32(body + 8, made->count);
	cfd_put32(body + 12, 2);
	answer = cfd_call(CFD_KIND_DECLASSIFY, body, sizeof(body), fids, 2 * column, &length);
	if (length != (uint32) made->count)
		cfd_violation("declassified results have the wrong length");
	made->answers = palloc(length);
	memcpy(made->answers, answer, length);
	pfree(fids);
}

/* The tests that an estimator will make of a restriction, if it is simple. */
static void
test_beforehand(FunctionCallInfo fcinfo, Kind kind, CfdEstimate *made)
{
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	List	   *args = (List *) PG_GETARG_POINTER(2);
	Oid			operator = PG_GETARG_OID(1);
	const CfdFunction *function;
	VariableStatData column;
	Node	   *other;
	bool		column_first;

	if (!get_restriction_variable(root, args, PG_GETARG_INT32(3), &column, &other, &column_first))
		return;
	/* As PostgreSQL's estimators do. */
	if (kind == OF_DIFFERENCE)
		operator = get_negator(operator);
	if (kind == OF_RANGE && !column_first)
		operator = get_commutator(operator);
	made->function = get_opcode(operator);
	made->constant_first = kind != OF_RANGE && !column_first;
	function = cfd_function(made->function);
	if (function != NULL && function->call == CFD_CALL_TEST && function->operands == 2 &&
		IsA(other, Const) && !((Const *) other)->constisnull && HeapTupleIsValid(column.statsTuple))
	{
		made->constant = DatumGetUInt64(((Const *) other)->constvalue);
		add_values(made, column.statsTuple, STATISTIC_KIND_MCV);
		if (kind == OF_RANGE)
			add_values(made, column.statsTuple, STATISTIC_KIND_HISTOGRAM);
		if (made->count < TESTS_MIN || made->constant == 0)
			made->count = 0;
		else
			make_tests(made, function);
	}
	ReleaseVariableStats(column);
}

static Datum
estimate(FunctionCallInfo fcinfo, PGFunction stock, Kind kind)
{
	CfdEstimate made = {0};
	Datum		result;

	test_beforehand(fcinfo, kind, &made);
	cfd_estimate = made;
	PG_TRY();
	{
		result = DirectFunctionCall4Coll(stock, PG_GET_COLLATION(), PG_GETARG_DATUM(0), PG_GETARG_DATUM(1),
										 PG_GETARG_DATUM(2), PG_GETARG_DATUM(3));
	}
	PG_FINALLY();
	{
		cfd_estimate.count = 0;
	}
	PG_END_TRY();
	if (kind == OF_RANGE)
		return Float8GetDatum(cfd_estimate_bound((PlannerInfo *) PG_GETARG_POINTER(0), (List *) PG_GETARG_POINTER(2),
												 PG_GETARG_INT32(3), DatumGetFloat8(result)));
	return result;
}

#define ESTIMATOR(name, kind) \
	PG_FUNCTION_INFO_V1(cfd_##name); \
	Datum \
	cfd_##name(PG_FUNCTION_ARGS) \
	{ \
		return estimate(fcinfo, name, kind); \
	}

ESTIMATOR(eqsel, OF_EQUALITY)
ESTIMATOR(neqsel, OF_DIFFERENCE)
ESTIMATOR(scalarltsel, OF_RANGE)
ESTIMATOR(scalarlesel, OF_RANGE)
ESTIMATOR(scalargtsel, OF_RANGE)
ESTIMATOR(scalargesel, OF_RANGE)
