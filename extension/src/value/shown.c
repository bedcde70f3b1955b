/*
 * shown.c
 *	  Whose output the text of a protected value is; see shown.h.
 *
 * Most functions that turn rows into text are found by their argument types
 * before they run (hooks/packed.c). This module handles what has no types
 * there: PL/pgSQL records, C functions that accept any row, queries passed as
 * strings. It looks at where the caller keeps the FmgrInfo of the output
 * function. Code that converts many values (record_out, hstore, PL/Perl) has
 * it in palloc'd memory. Code that reports one value in a message (a unique
 * violation, RAISE) has it in its stack frame. So has code that reads rows
 * through SPI to print them (query_to_xml), but it runs in SPI's memory
 * context.
 *
 * Does not detect JSON functions that are passed a record of unknown columns;
 * hooks/packed.c refuses those.
 *
 * Invariant: as in shown.h.
 */
#include "postgres.h"

#include "access/transam.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "nodes/primnodes.h"
#include "session/channel.h"
#include "tcop/pquery.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "value/place.h"
#include "value/shown.h"
#include "value/types.h"

CfdRunning	cfd_running = {NULL, false};

/* The caller's FmgrInfo of the array whose elements are being turned into text. */
static const FmgrInfo *array_output = NULL;

/*
 * Output function of arrays of protected types. PostgreSQL's own keeps the
 * FmgrInfo of its elements' output function in palloc'd memory; what tells whose
 * output it is is that of the array.
 */
PG_FUNCTION_INFO_V1(cfd_array_out);
Datum
cfd_array_out(PG_FUNCTION_ARGS)
{
	const FmgrInfo *before = array_output;
	Datum		result;

	array_output = fcinfo->flinfo;
	PG_TRY();
	{
		result = array_out(fcinfo);
	}
	PG_FINALLY();
	{
		array_output = before;
	}
	PG_END_TRY();
	return result;
}

/*
 * PL/pgSQL assignments convert between any two types through text, without the
 * parser.
 */
static void
check_conversion(const FmgrInfo *flinfo, uint8 type)
{
	if (flinfo != NULL && flinfo->fn_expr != NULL && IsA(flinfo->fn_expr, CoerceViaIO))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot cast type %s to %s", cfd_type_name(type),
						format_type_be(((CoerceViaIO *) flinfo->fn_expr)->resulttype)),
				 errdetail("A protected value's text is an envelope, not the value."),
				 errhint("Declare the variable with the protected type.")));
}

/*
 * On every platform of PostgreSQL 15 that we support, the stack grows towards
 * lower addresses and lies above all other memory.
 */
static bool
in_stack(const FmgrInfo *flinfo)
{
	char		here;

	return (uintptr_t) flinfo > (uintptr_t) &here &&
		(cfd_running.outermost == NULL || (uintptr_t) flinfo < (uintptr_t) cfd_running.outermost);
}

/*
 * Whether rows are being sent to the client: either a row is being written, or
 * nothing but the client's portal is running.
 */
static bool
shows_rows(void)
{
	return cfd_running.showing || (cfd_running.outermost == NULL && PortalIsValid(ActivePortal));
}

/*
 * Whether a row that SPI has read is being printed. Rows read by DDL itself,
 * or to check a foreign key, appear in messages only.
 */
static bool
prints_read_row(void)
{
	if (cfd_mode == CFD_MODE_CATALOG || SPI_tuptable == NULL || strcmp(CurrentMemoryContext->name, "SPI Proc") != 0)
		return false;
	for (int i = 0; i < SPI_tuptable->tupdesc->natts; i++)
	{
		if (TupleDescAttr(SPI_tuptable->tupdesc, i)->atttypid >= FirstNormalObjectId)
			return true;
	}
	return false;
}

/*
 * PostgreSQL prepares statement parameters for its log: these are envelopes
 * sent by the client.
 */
static bool
logs_parameters(void)
{
	return strcmp(CurrentMemoryContext->name, "BuildParamLogString") == 0;
}

bool
cfd_is_in_message(const FmgrInfo *flinfo)
{
	flinfo = array_output != NULL ? array_output : flinfo;
	return flinfo != NULL && !cfd_running.showing && in_stack(flinfo) && !prints_read_row();
}

bool
cfd_is_quoted(const FmgrInfo *flinfo)
{
	return cfd_channel.had_client && cfd_is_in_message(flinfo);
}

void
cfd_check_shown(const FmgrInfo *flinfo, uint8 type)
{
	flinfo = array_output != NULL ? array_output : flinfo;
	check_conversion(flinfo, type);
	if (!cfd_channel.had_client || flinfo == NULL || shows_rows())
		return;
	if (in_stack(flinfo) && !prints_read_row())
		return;
	if (logs_parameters())
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("a protected value of type %s cannot be put into a text, JSON or XML value", cfd_type_name(type)),
			 errdetail("It would be there as an envelope of this session, which nobody can open later."),
			 errhint("Keep protected values in columns and variables of protected types.")));
}
