/*
 * plain.c
 *	  Plain values that are combined with protected ones: columns and
 *	  expressions that the database can see anyway.
 *
 * Sends the value in binary format. The keeper decides whether the session may
 * do that.
 *
 * Invariant: a constant in the query text is rejected, since it may be a
 * secret in clear text. hooks/parse.c checks this during parse analysis, this
 * file catches the rest.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "session/channel.h"
#include "ops/evaluate.h"
#include "ops/sampled.h"
#include "ops/plain.h"
#include "nodes/primnodes.h"
#include "value/promote.h"
#include "value/place.h"
#include "value/types.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

void
cfd_refuse_constant(uint8 type)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("plaintext constant meets a protected value"),
			 errdetail("A constant of type %s is compared with, assigned to or computed with a protected value.",
					   cfd_plain_name(type)),
			 errhint("Connect through Confide's proxy, which seals constants."),
	/* Neither statement nor context may carry it into the log. */
			 errhidestmt(true),
			 errhidecontext(true)));
}

/* Rejects a constant that was written in the query. Parameters have no location. */
static void
check_argument(FmgrInfo *flinfo, uint8 type)
{
	Node	   *arg;

	if (flinfo == NULL || flinfo->fn_expr == NULL || !IsA(flinfo->fn_expr, FuncExpr))
		return;
	arg = linitial(((FuncExpr *) flinfo->fn_expr)->args);
	if (IsA(arg, Const) && ((Const *) arg)->location >= 0)
		cfd_refuse_constant(type);
}

static void
check_text(uint8 type, const bytea *sent)
{
	size_t		prefix = strlen(CFD_ENVELOPE_PREFIX);

	if (type != CFD_TYPE_TEXT && type != CFD_TYPE_VARCHAR && type != CFD_TYPE_BPCHAR)
		return;
	if (VARSIZE_ANY_EXHDR(sent) >= prefix && memcmp(VARDATA_ANY(sent), CFD_ENVELOPE_PREFIX, prefix) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("envelope in a plain value of type %s", cfd_plain_name(type)),
				 errdetail("It would be protected a second time."),
				 errhint("Give the parameter or expression the type %s.", cfd_type_name(type))));
}

/* Send functions by type code, looked up once. */
static FmgrInfo *
send_function(uint8 type)
{
	static FmgrInfo functions[CFD_TYPE_MAX + 1];
	FmgrInfo   *function = &functions[type];

	if (!OidIsValid(function->fn_oid))
	{
		Oid			send;
		bool		varlena;

		getTypeBinaryOutputInfo(cfd_plain_oid(type), &send, &varlena);
		fmgr_info_cxt(send, function, TopMemoryContext);
	}
	return function;
}

Datum
cfd_from_plain(FunctionCallInfo fcinfo, uint8 type, uint32 cast)
{
	CfdWirePutPlain body = {.typmod = -1,.t = type};
	bool		first = cfd_first_call(fcinfo->flinfo);
	CfdPlace	place = CFD_PLACE_STATEMENT;
	bytea	   *value;
	CfdFid		fid;

	if (unlikely(!cfd_channel.had_client) && cfd_sampled_without_client())
	{
		cfd_begin();
		return UInt64GetDatum(cfd_new_slot(CFD_STATEMENT));
	}
	if (first)
		check_argument(fcinfo->flinfo, type);
	value = SendFunctionCall(send_function(type), PG_GETARG_DATUM(0));
	check_text(type, value);
	cfd_begin();
	if (first && cast == 0)
		place = cfd_place_result(fcinfo->flinfo, NULL, 0);
	fid = cfd_new_slot(cfd_place_arena(place));
	body.fid = fid;
	cfd_send(CFD_KIND_PUT_PLAIN, &body, sizeof(body), VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
	pfree(value);
	if (cast != 0)
		return UInt64GetDatum(cfd_evaluate_fid(fcinfo->flinfo, cast, 0, &fid, 1));
	cfd_mark_called(fcinfo->flinfo);
	if (place == CFD_PLACE_PERMANENT)
		fid = cfd_make_constant(fid, type);
	else
		cfd_after_operation();
	return UInt64GetDatum(fid);
}
