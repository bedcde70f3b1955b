/*
 * passing.c
 *	  A receiver in front of the one that writes to the client; see
 *	  passing.h.
 *
 * The contents of a record are known only row by row. The receiver therefore
 * calls the record's output function once and discards the result;
 * value/shown.c raises the error if the record contains something protected.
 *
 * Invariant: as in passing.h.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "cell/cell.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "result/passing.h"
#include "session/channel.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "value/shown.h"

/* Checks the records of a row, whose contents only the row itself tells. */
static void
check_records(TupleTableSlot *slot)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;

	for (int i = 0; i < desc->natts; i++)
	{
		Oid			type = TupleDescAttr(desc, i)->atttypid;
		bool		is_null;
		Datum		value;

		if (type != RECORDOID && type != RECORDARRAYOID)
			continue;
		value = slot_getattr(slot, i + 1, &is_null);
		if (!is_null)
			pfree(OidOutputFunctionCall(type == RECORDOID ? F_RECORD_OUT : F_ARRAY_OUT, value));
	}
}

static bool
pass(TupleTableSlot *slot, DestReceiver *self)
{
	CfdPassing *passing = (CfdPassing *) self;
	bool		more;

	if (cfd_channel.had_client)
		check_records(slot);
	cfd_running.showing = true;
	more = passing->to->receiveSlot(slot, passing->to);
	cfd_running.showing = false;
	return more;
}

static void
refuse_within(const Form_pg_attribute attribute)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("column \"%s\" of the result cannot have type %s", NameStr(attribute->attname),
					format_type_be(attribute->atttypid)),
			 errdetail("The client could not open the protected values within it."),
			 errhint("Select the protected values as columns of their own.")));
}

/*
 * Whether the type is protected or an array of a protected type, which a proxy
 * opens.
 */
static bool
is_opened(Oid type)
{
	Oid			base = getBaseType(type);
	Oid			element = get_element_type(base);

	return cfd_family_code(OidIsValid(element) ? element : base) != 0;
}

static void
pass_startup(DestReceiver *self, int operation, TupleDesc desc)
{
	CfdPassing *passing = (CfdPassing *) self;

	for (int i = 0; cfd_channel.had_client && i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (!is_opened(attribute->atttypid) && cfd_family_contains(attribute->atttypid))
			refuse_within(attribute);
	}
	passing->to->rStartup(passing->to, operation, desc);
}

static void
pass_shutdown(DestReceiver *self)
{
	CfdPassing *passing = (CfdPassing *) self;

	passing->to->rShutdown(passing->to);
}

/* The wrapped receiver is destroyed by its creator. */
static void
pass_destroy(DestReceiver *self)
{
}

static bool
may_hold_protected(TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Oid			type = TupleDescAttr(desc, i)->atttypid;

		if (type >= FirstNormalObjectId || type == RECORDOID || type == RECORDARRAYOID || type == ANYARRAYOID)
			return true;
	}
	return false;
}

/*
 * Rows that the outermost statement stores, as for RETURNING and CALL, are for
 * the client, too.
 */
static bool
is_for_client(const DestReceiver *to, bool outermost)
{
	return to->mydest == DestRemote || to->mydest == DestRemoteExecute || to->mydest == DestCopyOut ||
		(to->mydest == DestTuplestore && outermost);
}

DestReceiver *
cfd_passing_receiver(CfdPassing *passing, DestReceiver *to, TupleDesc desc, bool outermost)
{
	if (!is_for_client(to, outermost) || (desc != NULL && !may_hold_protected(desc)))
		return to;
	passing->pub = (DestReceiver) {pass, pass_startup, pass_shutdown, pass_destroy, to->mydest};
	passing->to = to;
	return &passing->pub;
}
