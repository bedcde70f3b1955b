/*
 * backup.c
 *	  SQL functions with which `confide backup` copies the keeper's store.
 *
 * The files are sealed by the keeper; here they are bytes.
 *
 * Invariant: all parts come from the copy that this session has begun.
 */
#include "postgres.h"

#include "session/channel.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/tuplestore.h"

#define HEAD_BYTES 16
#define COPY_COLUMNS 5

PG_FUNCTION_INFO_V1(cfd_store_copy);
Datum
cfd_store_copy(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const char *answer;
	uint32		length;
	uint32		at = HEAD_BYTES;

	answer = cfd_call(CFD_KIND_STORE_COPY, NULL, 0, NULL, 0, &length);
	if (length < HEAD_BYTES)
		cfd_violation("answer about a copy is too short");
	InitMaterializedSRF(fcinfo, 0);
	for (uint32 i = 0; i < cfd_get32(answer + 12); i++)
	{
		Datum		values[COPY_COLUMNS];
		bool		nulls[COPY_COLUMNS] = {0};
		uint64		name_length;

		if (length - at < 16 || (name_length = cfd_get64(answer + at + 8)) > length - at - 16)
			cfd_violation("answer about a copy is too short");
		values[0] = Int32GetDatum(i);
		values[1] = PointerGetDatum(cstring_to_text_with_len(answer + at + 16, name_length));
		values[2] = Int64GetDatum(cfd_get64(answer + at));
		values[3] = LSNGetDatum(cfd_get64(answer));
		values[4] = Int32GetDatum(cfd_get32(answer + 8));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		at += 16 + name_length;
	}
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(cfd_store_read);
Datum
cfd_store_read(PG_FUNCTION_ARGS)
{
	unsigned char body[CFD_FIXED_STORE_READ];
	const char *answer;
	uint32		length;
	bytea	   *result;

	cfd_put32(body, (uint32) PG_GETARG_INT32(0));
	cfd_put32(body + 4, 0);
	cfd_put64(body + 8, (uint64) PG_GETARG_INT64(1));
	answer = cfd_call(CFD_KIND_STORE_READ, body, sizeof(body), NULL, 0, &length);
	result = palloc(VARHDRSZ + length);
	SET_VARSIZE(result, VARHDRSZ + length);
	memcpy(VARDATA(result), answer, length);
	PG_RETURN_BYTEA_P(result);
}
