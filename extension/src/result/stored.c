/*
 * stored.c
 *	  Reads ahead in the tuplestore of the portal that is being sent; see
 *	  stored.h.
 *
 * No receiver of ours is between such a tuplestore and the client. When the
 * first protected value is written, rows are therefore read through a read
 * pointer of our own, starting at the first row, and their values are noted.
 * The batches grow (1, 2, 4, ... rows), because the client may have asked for
 * a limited number of rows, which we cannot see. When the client returns for
 * more rows, values are requested one by one.
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
	Tuplestorestate *store;		/* NULL: none; otherwise the portal's */
	int			pointer;		/* our read pointer */
	bool		at_end;
	int			rows;			/* number of rows to read next */
	MemoryContextCallback callback;
	CfdEnvelopes envelopes;
} Stored;

static Stored stored;

/* Callback: the tuplestore is freed, and our state with it. */
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
	cfd_envelopes_begin(&stored.envelopes, portal->tupDesc, context, true, false);
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

/*
 * Whether the portal's tuplestore is complete and is being sent from its first
 * row on.
 */
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
