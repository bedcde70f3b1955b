/*
 * evaluate.c
 *	  Operations on single rows; see evaluate.h.
 *
 * Invariant: as in evaluate.h.
 */
#include "postgres.h"

#include "known/known.h"
#include "session/channel.h"
#include "common/hashfn.h"
#include "ops/evaluate.h"
#include "ops/sampled.h"
#include "value/promote.h"
#include "value/place.h"
#include "value/sealed.h"
#include "value/types.h"
#include "utils/lsyscache.h"

/*
 * A function argument. The functions are strict, so FID 0, which the keeper
 * takes for NULL, is invalid.
 */
static inline CfdFid
operand(FunctionCallInfo fcinfo, int number)
{
	CfdFid		fid = DatumGetUInt64(PG_GETARG_DATUM(number));

	if (unlikely(fid == 0))
		cfd_invalid_fid();
	return fid;
}

/* Type code of a function's result. */
static uint8
result_type(const FmgrInfo *flinfo)
{
	Oid			type = get_fn_expr_rettype((FmgrInfo *) flinfo);

	if (!OidIsValid(type))
		type = get_func_rettype(flinfo->fn_oid);
	return cfd_type_code(type);
}

/* Place of the result of the first call through an FmgrInfo, which may be kept. */
static pg_noinline CfdPlace
first_place(FmgrInfo *flinfo, const CfdFid *operands, int count, uint8 *type)
{
	CfdPlace	place;

	/* The session's arenas must be known to recognise the operands' arenas. */
	cfd_begin();
	place = cfd_place_result(flinfo, operands, count);
	if (place == CFD_PLACE_PERMANENT)
	{
		*type = result_type(flinfo);
		if (*type == 0)
			place = CFD_PLACE_STATEMENT;
	}
	cfd_mark_called(flinfo);
	return place;
}

CfdFid
cfd_evaluate_fid(FmgrInfo *flinfo, uint32 program, int32 immediate, const CfdFid *operands, int count)
{
	struct
	{
		CfdWireEval fixed;
		CfdFid		fids[CFD_OPERANDS_MAX];
	}			body;
	CfdPlace	place = CFD_PLACE_STATEMENT;
	uint8		type = 0;
	CfdFid		fid;

	if (unlikely(!cfd_channel.had_client) && cfd_sampled_without_client())
	{
		cfd_begin();
		return cfd_new_slot(CFD_STATEMENT);
	}
	if (unlikely(cfd_first_call(flinfo)))
		place = first_place(flinfo, operands, count, &type);
	cfd_begin();
	fid = cfd_new_slot(cfd_place_arena(place));
	body.fixed = (CfdWireEval)
	{
		.program = program,.immediate = immediate,.first = fid,.rows = 1,.columns = count
	};
	memcpy(body.fids, operands, count * sizeof(CfdFid));
	cfd_send(CFD_KIND_EVAL, &body, sizeof(body.fixed) + count * sizeof(CfdFid), NULL, 0);
	if (unlikely(place == CFD_PLACE_PERMANENT))
		fid = cfd_make_constant(fid, type);
	else
		cfd_after_operation();
	return fid;
}

Datum
cfd_evaluate(FunctionCallInfo fcinfo, uint32 program, int32 immediate, int first, int operands)
{
	CfdFid		fids[CFD_OPERANDS_MAX];

	for (int i = 0; i < operands; i++)
		fids[i] = operand(fcinfo, first + i);
	return UInt64GetDatum(cfd_evaluate_fid(fcinfo->flinfo, program, immediate, fids, operands));
}

/* Evaluates over one row. Returns the declassified result, which has a known size. */
static const char *
declassify_fids(uint32 program, int32 immediate, const CfdFid *operands, int count, uint32 size)
{
	struct
	{
		CfdWireDeclassify fixed;
		CfdFid		fids[CFD_OPERANDS_MAX];
	}			body;
	const char *answer;
	uint32		length;

	body.fixed = (CfdWireDeclassify)
	{
		.program = program,.immediate = immediate,.rows = 1,.columns = count
	};
	memcpy(body.fids, operands, count * sizeof(CfdFid));
	answer = cfd_call(CFD_KIND_DECLASSIFY, &body, sizeof(body.fixed) + count * sizeof(CfdFid),
					  NULL, 0, &length);
	if (unlikely(length != size))
		cfd_violation("declassified result has the wrong length");
	return answer;
}

static const char *
declassify(FunctionCallInfo fcinfo, uint32 program, int operands, uint32 size)
{
	CfdFid		fids[CFD_OPERANDS_MAX];

	for (int i = 0; i < operands; i++)
		fids[i] = operand(fcinfo, i);
	return declassify_fids(program, 0, fids, operands, size);
}

Datum
cfd_evaluate_nullable(FunctionCallInfo fcinfo, uint32 program, int32 immediate, int first,
					  int operands, uint32 test)
{
	Datum		result = cfd_evaluate(fcinfo, program, immediate, first, operands);

	if (unlikely(!cfd_channel.had_client) && cfd_sampled_without_client())
		return result;
	if (cfd_is_null(test, DatumGetUInt64(result)))
		PG_RETURN_NULL();
	return result;
}

bool
cfd_is_null(uint32 test, CfdFid fid)
{
	CfdFid		same[2] = {fid, fid};

	/* A NULL constant in a catalog has no FID. */
	return fid == 0 || *declassify_fids(test, 0, same, 2, 1) == 2;
}

Datum
cfd_test(FunctionCallInfo fcinfo, uint32 program, int operands)
{
	unsigned char answer;
	bool		holds;

	if (unlikely(!cfd_channel.had_client) && cfd_sampled_without_client())
		PG_RETURN_BOOL(true);
	if (operands == 2 && cfd_known_test(program, CFD_ORDER_HOLDS, operand(fcinfo, 0), operand(fcinfo, 1), &holds))
		PG_RETURN_BOOL(holds);
	answer = *declassify(fcinfo, program, operands, 1);
	if (unlikely(answer > 1))
	{
		if (answer != 2)
			cfd_violation("impossible boolean");
		PG_RETURN_NULL();
	}
	PG_RETURN_BOOL(answer == 1);
}

/* The frame is computed row by row as PostgreSQL moves it: each row asks once or twice. */
Datum
cfd_in_range(FunctionCallInfo fcinfo, uint32 program)
{
	CfdFid		fids[3];
	int32		sides = 0;
	unsigned char answer;

	for (int i = 0; i < 3; i++)
		fids[i] = operand(fcinfo, i);
	if (PG_GETARG_BOOL(3))
		sides |= CFD_RANGE_PRECEDING;
	if (PG_GETARG_BOOL(4))
		sides |= CFD_RANGE_UP_TO;
	answer = *declassify_fids(program, sides, fids, 3, 1);
	if (unlikely(answer > 1))
		cfd_violation("impossible boolean");
	PG_RETURN_BOOL(answer == 1);
}

Datum
cfd_compare(FunctionCallInfo fcinfo, uint32 program, uint16 comparison, uint8 holds)
{
	bool		result;

	if (cfd_known_test(comparison, holds, operand(fcinfo, 0), operand(fcinfo, 1), &result))
		PG_RETURN_BOOL(result);
	return cfd_test(fcinfo, program, 2);
}

int
cfd_order_fids(uint32 program, CfdFid a, CfdFid b)
{
	CfdFid		fids[2] = {a, b};
	signed char answer;
	int			order;

	if (unlikely(a == 0 || b == 0))
		cfd_invalid_fid();
	if (cfd_known_order(program, a, b, &order))
		return order;
	answer = *declassify_fids(program, 0, fids, 2, 1);
	if (unlikely(answer < -1 || answer > 1))
		cfd_violation("impossible order");
	return answer;
}

Datum
cfd_order(FunctionCallInfo fcinfo, uint32 program)
{
	PG_RETURN_INT32(cfd_order_fids(program, operand(fcinfo, 0), operand(fcinfo, 1)));
}

static uint64
declassify_hash(FunctionCallInfo fcinfo, uint32 program)
{
	return *(const CfdWireU64 *) declassify(fcinfo, program, 1, sizeof(uint64));
}

Datum
cfd_hash(FunctionCallInfo fcinfo, uint32 program)
{
	PG_RETURN_UINT32((uint32) declassify_hash(fcinfo, program));
}

/* PostgreSQL requires that with seed 0 the lower half equals the unseeded hash. */
Datum
cfd_hash_seeded(FunctionCallInfo fcinfo, uint32 program)
{
	uint64		hash = declassify_hash(fcinfo, program);
	uint64		seed = (uint64) PG_GETARG_INT64(1);

	if (seed != 0)
		hash = hash_combine64(hash, seed);
	PG_RETURN_UINT64(hash);
}

/* Whether the client has given the value this modifier already. */
static bool
is_fitted(FmgrInfo *flinfo, CfdFid fid, int32 typmod)
{
	CfdSealed	sealed;

	return cfd_sealed_find(fid, &sealed) && cfd_sealed_typmod(&sealed) == typmod &&
		cfd_sealed_type(&sealed) == result_type(flinfo);
}

Datum
cfd_typmod(FunctionCallInfo fcinfo, uint32 assignment, uint32 explicit_cast)
{
	int32		typmod = PG_GETARG_INT32(1);
	bool		is_explicit = PG_NARGS() > 2 && PG_GETARG_BOOL(2);
	CfdFid		fid = operand(fcinfo, 0);

	if (is_fitted(fcinfo->flinfo, fid, typmod))
		PG_RETURN_DATUM(UInt64GetDatum(fid));
	return cfd_evaluate(fcinfo, is_explicit ? explicit_cast : assignment, typmod, 0, 1);
}
