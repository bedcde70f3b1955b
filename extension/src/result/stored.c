/*
 * stored.c
 *	  Reads ahead in the store of the portal that is being written: see
 *	  stored.h.
 *
 * No receiver of ours comes between such a store and the client. So when the first
 * protected value is written, rows are read through a read pointer of our own, from the
 * first on, and their values noted: one row, then two, four, and so on, since the client may
 * have asked for some rows only, of which nothing tells. When it comes back for more, values are
 * asked for one by one.
 *
 * Invariant: as in stored.h.
 */
#include "postgres.h"

#include "result/envelopes.h"
#include "result/results.h"
#include "result/stored.h"
#include "executor/executor.h"
#include "value/place.h"
#include "tcop/pquery.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/tuplestore.h"

typedef struct Stored
{
	Tuplestorestate *store;		/* NULL: none; else it is its portal's */
	int			pointer;		/* ours */
	bool		at_end;
	int			rows;			/* that are read next */
	MemoryContextCallback callback;
	CfdEnvelopes envelopes;
} Stored;

static Stored stored;

/* The store goes, and the memory of what we know of it. */
static void
cfd_stored_results_forget(void *arg)
{
	(void) arg;
	stored.store = NULL;
}

static void
cfd_stored_results_begin(Portal portal)
{
	MemoryContext context;
	MemoryContext before;

	if (stored.store != NULL)
		MemoryContextDelete(stored.envelopes.context);
	context = AllocSetContextCreate(portal->holdContext, "Confide stored results", ALLOCSET_SMALL_SIZES);
	before = MemoryContextSwitchTo(context);
	cfd_envelopes_begin(&stored.envelopes, portal->tupDesc, context, true);
	MemoryContextSwitchTo(before);
	stored.callback = (MemoryContextCallback) {.func = cfd_stored_results_forget};
	MemoryContextRegisterResetCallback(context, &stored.callback);
	stored.pointer = tuplestore_alloc_read_pointer(portal->holdStore, EXEC_FLAG_REWIND);
	tuplestore_select_read_pointer(portal->holdStore, stored.pointer);
	tuplestore_rescan(portal->holdStore);
	tuplestore_select_read_pointer(portal->holdStore, 0);
	stored.at_end = false;
	stored.rows = 1;
	stored.store = portal->holdStore;
}

/* Notes the values of the next rows. */
static void
read_on(Portal portal)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(portal->tupDesc, &TTSOpsMinimalTuple);
	MemoryContext before = MemoryContextSwitchTo(portal->holdContext);

	cfd_envelopes_clear(&stored.envelopes);
	tuplestore_select_read_pointer(stored.store, stored.pointer);
	for (int i = 0; i < stored.rows && !cfd_envelopes_full(&stored.envelopes); i++)
	{
		if (!tuplestore_gettupleslot(stored.store, true, false, slot))
		{
			stored.at_end = true;
			break;
		}
		cfd_envelopes_note(&stored.envelopes, slot);
	}
	stored.rows = Min(stored.rows * 2, Min(cfd_result_batch, CFD_ENVELOPE_ROWS_MAX));
	tuplestore_select_read_pointer(stored.store, 0);
	MemoryContextSwitchTo(before);
	ExecDropSingleTupleTableSlot(slot);
}

/* Whether the portal's store is complete, and is written from its first row on. */
static bool
is_written(Portal portal)
{
	return PortalIsValid(portal) && portal->holdStore != NULL && portal->atStart &&
		cfd_statement_depth == 0;
}

bool
cfd_stored_envelope(CfdFid fid, uint8 type, const char **envelope, uint32 *length)
{
	Portal		portal = ActivePortal;

	if (!is_written(portal) || cfd_result_batch == 0)
		return false;
	if (stored.store != portal->holdStore)
		cfd_stored_results_begin(portal);
	while (stored.envelopes.next == stored.envelopes.values && !stored.at_end)
		read_on(portal);
	return cfd_envelopes_next(&stored.envelopes, fid, type, envelope, length);
}
