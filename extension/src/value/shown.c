/*
 * shown.c
 *	  Whose output a protected value's text is: see shown.h.
 *
 * Most of what makes text of rows is found by the types of its arguments before it runs
 * (hooks/packed.c). This is for what has no types there: records of PL/pgSQL, functions in C that take any
 * row, queries as strings. Told by where the caller keeps what it calls the output function with:
 * whoever makes text of many values (record_out, hstore, PL/Perl) has it prepared in memory;
 * whoever names one value in a message (a unique violation, RAISE) has it in its stack frame. So has
 * whoever reads rows by SPI to print them (query_to_xml), in SPI's own memory context.
 *
 * Does not see: JSON functions that are given a record whose columns nobody knows; those are refused
 * in hooks/packed.c.
 *
 * Invariant: as in shown.h.
 */
#include "postgres.h"

#include "access/transam.h"
#include "executor/spi.h"
#include "nodes/primnodes.h"
#include "session/channel.h"
#include "tcop/pquery.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "value/place.h"
#include "value/shown.h"
#include "value/types.h"

CfdRunning	cfd_running = {NULL, false};

/*
 * PL/pgSQL assigns between any types by way of their texts, without the parser.
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

/* Stacks grow towards lower addresses, and lie above all other memory, wherever PostgreSQL 15 runs. */
static bool
in_stack(const FmgrInfo *flinfo)
{
	char		here;

	return (uintptr_t) flinfo > (uintptr_t) &here &&
		(cfd_running.outermost == NULL || (uintptr_t) flinfo < (uintptr_t) cfd_running.outermost);
}

/* Whether the client is being told rows that are there already: nothing runs but its portal. */
static bool
shows_rows(void)
{
	return cfd_running.showing || (cfd_running.outermost == NULL && PortalIsValid(ActivePortal));
}

/* Whether a row that SPI has read is being printed; of a definition's own, a foreign key's, it is in a message. */
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

/* PostgreSQL notes the parameters of a statement for its log: envelopes that came from the client. */
static bool
logs_parameters(void)
{
	return strcmp(CurrentMemoryContext->name, "BuildParamLogString") == 0;
}

void
cfd_check_shown(const FmgrInfo *flinfo, uint8 type)
{
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
