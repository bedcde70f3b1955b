/*
 * functions.c
 *	  SQL functions about the channel: handshake, version, counters,
 *	  microbenchmarks.
 *
 * Handshake messages are forwarded without being interpreted.
 *
 * Invariant: none of these functions shows a value or a key.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "session/arena.h"
#include "session/channel.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/plancache.h"
#include "utils/tuplestore.h"

#define LAST_STEP 3
/*
 * Principal, schema, table, column, and counts of booleans, orders, ranks,
 * tokens and values shown.
 */
#define CFD_ACCOUNT_COLUMNS 9

PG_FUNCTION_INFO_V1(cfd_handshake);
Datum
cfd_handshake(PG_FUNCTION_ARGS)
{
	int32		step = PG_GETARG_INT32(0);
	bytea	   *message = PG_GETARG_BYTEA_PP(1);
	CfdWireHandshake body = {.step = step};
	const char *answer;
	uint32		length;
	bytea	   *result;

	if (step != 1 && step != LAST_STEP)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("step of a handshake must be 1 or %d", LAST_STEP)));
	answer = cfd_call(CFD_KIND_HANDSHAKE, &body, sizeof(body),
					  VARDATA_ANY(message), VARSIZE_ANY_EXHDR(message), &length);
	if (step == LAST_STEP)
	{
		cfd_channel.had_client = true;
		cfd_channel.lost_client = false;
		cfd_channel.clients++;
		cfd_forget_constants();
	}
	result = palloc(VARHDRSZ + length);
	SET_VARSIZE(result, VARHDRSZ + length);
	memcpy(VARDATA(result), answer, length);
	PG_RETURN_BYTEA_P(result);
}

/*
 * Plans with constants of routines' texts have lost their values, or have them
 * of another client. Made anew, they read them again.
 */
void
cfd_forget_constants(void)
{
	if (cfd_channel.kept_constants)
		ResetPlanCache();
	cfd_channel.kept_constants = false;
}

PG_FUNCTION_INFO_V1(cfd_version);
Datum
cfd_version(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("confide %s (contract %d)", CFD_VERSION, CFD_CONTRACT_VERSION)));
}

/* Returns the keeper's counters, which arrive as lines "name value", as rows. */
PG_FUNCTION_INFO_V1(cfd_stat_keeper);
Datum
cfd_stat_keeper(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const char *answer;
	uint32		length;
	char	   *text;
	char	   *line;
	char	   *rest;

	answer = cfd_call(CFD_KIND_STATS, NULL, 0, NULL, 0, &length);
	text = pnstrdup(answer, length);
	InitMaterializedSRF(fcinfo, 0);
	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
	{
		char	   *space = strchr(line, ' ');
		Datum		values[2];
		bool		nulls[2] = {false, space == NULL};

		if (space != NULL)
			*space = '\0';
		values[0] = CStringGetTextDatum(line);
		values[1] = space != NULL ? CStringGetTextDatum(space + 1) : (Datum) 0;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * Stores one line of the account as a row: principal, schema, table, column,
 * counts. NULL stores a row of NULLs.
 */
static void
put_account(ReturnSetInfo *rsinfo, char *line)
{
	Datum		values[CFD_ACCOUNT_COLUMNS] = {0};
	bool		nulls[CFD_ACCOUNT_COLUMNS] = {false};

	for (int i = 0; i < CFD_ACCOUNT_COLUMNS; i++)
	{
		char	   *tab = line != NULL ? strchr(line, '\t') : NULL;

		if (tab != NULL)
			*tab = '\0';
		nulls[i] = line == NULL || *line == '\0';
		if (!nulls[i])
			values[i] = i < 4 ? CStringGetTextDatum(line) : Int64GetDatum((int64) strtoull(line, NULL, 10));
		line = tab != NULL ? tab + 1 : NULL;
	}
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* What the keeper has disclosed about each column, and to which principal. */
PG_FUNCTION_INFO_V1(cfd_stat_leakage);
Datum
cfd_stat_leakage(PG_FUNCTION_ARGS)
{
	CfdWireAccounts body = {0};
	CfdReadAccountsAnswer read;
	uint32		length;
	const char *answer = cfd_call(CFD_KIND_ACCOUNTS, &body, sizeof(body), NULL, 0, &length);
	char	   *text;
	char	   *rest;

	CFD_DECODE(accounts_answer, answer, length, &read);
	text = pnstrdup((const char *) read.lines, read.lines_length);
	InitMaterializedSRF(fcinfo, 0);
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		put_account((ReturnSetInfo *) fcinfo->resultinfo, line);
	return (Datum) 0;
}

/* The same report sealed for the client, which alone can read it. */
PG_FUNCTION_INFO_V1(cfd_leakage_report);
Datum
cfd_leakage_report(PG_FUNCTION_ARGS)
{
	CfdWireAccounts body = {.words = DatumGetUInt64(PG_GETARG_DATUM(0))};
	uint32		length;

	cfd_begin();
	body.to = cfd_new_slot(CFD_STATEMENT);
	(void) cfd_call(CFD_KIND_ACCOUNTS, &body, sizeof(body), NULL, 0, &length);
	PG_RETURN_DATUM(UInt64GetDatum(body.to));
}

static float8
nanoseconds_each(instr_time start, int64 n)
{
	instr_time	end;

	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	return n > 0 ? INSTR_TIME_GET_DOUBLE(end) * 1e9 / n : 0;
}

PG_FUNCTION_INFO_V1(cfd_bench_answered);
Datum
cfd_bench_answered(PG_FUNCTION_ARGS)
{
	int64		n = PG_GETARG_INT64(0);
	uint32		length;
	instr_time	start;

	cfd_fence();
	INSTR_TIME_SET_CURRENT(start);
	for (int64 i = 0; i < n; i++)
	{
		cfd_call(CFD_KIND_PING, NULL, 0, NULL, 0, &length);
		CHECK_FOR_INTERRUPTS();
	}
	PG_RETURN_FLOAT8(nanoseconds_each(start, n));
}

/*
 * Sends a message that has the size of a small operation and is cheap for the
 * keeper: a release that releases nothing.
 */
PG_FUNCTION_INFO_V1(cfd_bench_oneway);
Datum
cfd_bench_oneway(PG_FUNCTION_ARGS)
{
	int64		n = PG_GETARG_INT64(0);
	CfdWireRelease body = {0};
	instr_time	start;
	float8		result;

	cfd_begin();
	body.arena = cfd_fid_partition(cfd_channel.kept);
	body.keep = cfd_fid_slot(cfd_channel.kept);
	cfd_fence();
	INSTR_TIME_SET_CURRENT(start);
	for (int64 i = 0; i < n; i++)
	{
		cfd_send(CFD_KIND_RELEASE, &body, sizeof(body), NULL, 0);
		CHECK_FOR_INTERRUPTS();
	}
	result = nanoseconds_each(start, n);
	cfd_fence();
	PG_RETURN_FLOAT8(result);
}
