/*
 * aggregates.c
 *	  Aggregates whose transition state lives in the keeper.
 *
 * A state is a FID of the statement arena. Transition steps are one-way
 * messages that modify it in place. The aggregate's meaning is unknown here.
 *
 * Invariant: a state is modified only by the transition and combine functions
 * of the aggregate that created it, which PostgreSQL calls one at a time.
 */
#include "postgres.h"

#include "session/channel.h"
#include "ops/evaluate.h"

static void
check_context(FunctionCallInfo fcinfo)
{
	/* In a direct call the state could be any number. The keeper checks it as well. */
	if (!AggCheckCallContext(fcinfo, NULL))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("aggregate function called in non-aggregate context")));
}

Datum
cfd_aggregate_step(FunctionCallInfo fcinfo, uint16 aggregate)
{
	CfdWireAggregateStep body = {.aggregate = aggregate};
	bool		new_state = PG_ARGISNULL(0);
	CfdFid		state;

	check_context(fcinfo);
	if (PG_ARGISNULL(1))
	{
		if (new_state)
			PG_RETURN_NULL();
		return PG_GETARG_DATUM(0);
	}
	cfd_begin();
	state = new_state ? cfd_new_slot(CFD_STATEMENT) : DatumGetUInt64(PG_GETARG_DATUM(0));
	body.state = state;
	body.value = DatumGetUInt64(PG_GETARG_DATUM(1));
	body.new = new_state;
	cfd_send(CFD_KIND_AGGREGATE_STEP, &body, sizeof(body), NULL, 0);
	cfd_after_operation();
	return UInt64GetDatum(state);
}

/* Sends a value to a state, which may be new. */
static void
take_in(FunctionCallInfo fcinfo, uint16 aggregate, CfdFid state, int argument, bool new_state)
{
	CfdWireAggregateStep body = {.aggregate = aggregate,.state = state,.new = new_state};

	body.value = DatumGetUInt64(PG_GETARG_DATUM(argument));
	cfd_send(CFD_KIND_AGGREGATE_STEP, &body, sizeof(body), NULL, 0);
}

Datum
cfd_aggregate_step_two(FunctionCallInfo fcinfo, uint16 aggregate, bool joined)
{
	bool		new_state = PG_ARGISNULL(0);
	CfdFid		state;

	check_context(fcinfo);
	if (PG_ARGISNULL(1) || (!joined && PG_ARGISNULL(2)))
	{
		if (new_state)
			PG_RETURN_NULL();
		return PG_GETARG_DATUM(0);
	}
	cfd_begin();
	state = new_state ? cfd_new_slot(CFD_STATEMENT) : DatumGetUInt64(PG_GETARG_DATUM(0));
	/* There is no delimiter before the first string. */
	if (joined && !new_state && !PG_ARGISNULL(2))
		take_in(fcinfo, aggregate, state, 2, false);
	take_in(fcinfo, aggregate, state, 1, new_state);
	if (!joined)
		take_in(fcinfo, aggregate, state, 2, false);
	cfd_after_operation();
	return UInt64GetDatum(state);
}

PG_FUNCTION_INFO_V1(cfd_aggregate_combine);
Datum
cfd_aggregate_combine(PG_FUNCTION_ARGS)
{
	CfdWireAggregateCombine body;

	check_context(fcinfo);
	if (PG_ARGISNULL(0))
	{
		if (PG_ARGISNULL(1))
			PG_RETURN_NULL();
		return PG_GETARG_DATUM(1);
	}
	if (PG_ARGISNULL(1))
		return PG_GETARG_DATUM(0);
	body.into = DatumGetUInt64(PG_GETARG_DATUM(0));
	body.from = DatumGetUInt64(PG_GETARG_DATUM(1));
	cfd_send(CFD_KIND_AGGREGATE_COMBINE, &body, sizeof(body), NULL, 0);
	cfd_after_operation();
	return PG_GETARG_DATUM(0);
}

PG_FUNCTION_INFO_V1(cfd_aggregate_final);
Datum
cfd_aggregate_final(PG_FUNCTION_ARGS)
{
	CfdWireAggregateFinal body;

	check_context(fcinfo);
	cfd_begin();
	body.to = cfd_new_slot(CFD_STATEMENT);
	body.from = DatumGetUInt64(PG_GETARG_DATUM(0));
	cfd_send(CFD_KIND_AGGREGATE_FINAL, &body, sizeof(body), NULL, 0);
	cfd_after_operation();
	return UInt64GetDatum(body.to);
}

Datum
cfd_aggregate_final_or_null(FunctionCallInfo fcinfo, uint32 test)
{
	Datum		result = cfd_aggregate_final(fcinfo);

	if (cfd_is_null(test, DatumGetUInt64(result)))
		PG_RETURN_NULL();
	return result;
}

PG_FUNCTION_INFO_V1(cfd_aggstate_in);
Datum
cfd_aggstate_in(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot accept a value of type %s", "enc_aggstate")));
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(cfd_aggstate_out);
Datum
cfd_aggstate_out(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot display a value of type %s", "enc_aggstate")));
	PG_RETURN_VOID();
}
