/*
 * backup.c
 *	  SQL functions that `confide backup` uses to copy the keeper's store.
 *
 * The keeper has sealed the files; they are plain bytes here.
 *
 * Invariant: all parts come from the copy that this session has begun.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "session/channel.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/tuplestore.h"

#define COPY_COLUMNS 5

PG_FUNCTION_INFO_V1(cfd_store_copy);
Datum
cfd_store_copy(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const char *answer;
	uint32		length;
	CfdReadStoreCopyAnswer read;
	CfdReadFile file;

	answer = cfd_call(CFD_KIND_STORE_COPY, NULL, 0, NULL, 0, &length);
	CFD_DECODE(store_copy_answer, answer, length, &read);
	InitMaterializedSRF(fcinfo, 0);
	for (uint32 i = 0; cfd_read_file(&read.files, &file); i++)
	{
		Datum		values[COPY_COLUMNS];
		bool		nulls[COPY_COLUMNS] = {0};

		values[0] = Int32GetDatum(i);
		values[1] = PointerGetDatum(cstring_to_text_with_len((const char *) file.name, file.name_length));
		values[2] = Int64GetDatum(file.head.length);
		values[3] = LSNGetDatum(read.head.position);
		values[4] = Int32GetDatum(read.head.timeline);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(cfd_store_read);
Datum
cfd_store_read(PG_FUNCTION_ARGS)
{
	CfdWireStoreRead body = {.file = PG_GETARG_INT32(0),.offset = PG_GETARG_INT64(1)};
	const char *answer;
	uint32		length;
	bytea	   *result;

	answer = cfd_call(CFD_KIND_STORE_READ, &body, sizeof(body), NULL, 0, &length);
	result = palloc(VARHDRSZ + length);
	SET_VARSIZE(result, VARHDRSZ + length);
	memcpy(VARDATA(result), answer, length);
	PG_RETURN_BYTEA_P(result);
}
