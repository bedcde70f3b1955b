/*
 * results.c
 *	  A receiver that holds rows back so that the envelopes of many rows
 *	  can be fetched together; see results.h.
 *
 * The rows of a batch are copied, and their values are noted in the order in
 * which the wrapped receiver will write them (envelopes.h). There is only one
 * batch at a time, since only the outermost statement writes to the client.
 *
 * Invariant: as in results.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "known/known.h"
#include "result/envelopes.h"
#include "result/results.h"
#include "result/stored.h"
#include "executor/tuptable.h"
#include "utils/memutils.h"

#define BATCH_BYTES_MAX (512 * 1024)

int			cfd_result_batch = 1024;

typedef struct Results
{
	DestReceiver pub;
	DestReceiver *to;
	MemoryContext context;		/* NULL: no run */
	MemoryContext rows_context; /* memory context of the rows and their envelopes */
	TupleTableSlot *slot;
	TupleTableSlot *opened;		/* row with its cells opened; NULL: there are no cells */
	CfdEnvelopes envelopes;
	CfdBeside	beside;
	int			rows;
	MinimalTuple tuples[CFD_ENVELOPE_ROWS_MAX];
	Size		bytes;
} Results;

static Results results;

/* Source of envelopes: that of the value being written, if it was fetched. */
static bool
known_envelope(CfdSource *source, uint8 type, CfdFid fid, const char **envelope, uint32 *length)
{
	if (results.context != NULL)
		return cfd_envelopes_next(&results.envelopes, fid, type, envelope, length);
	return cfd_stored_envelope(fid, type, envelope, length);
}

static void
clear(void)
{
	results.rows = 0;
	results.bytes = 0;
	results.beside.values = 0;
	cfd_envelopes_clear(&results.envelopes);
	MemoryContextReset(results.rows_context);
}

/* Passes the rows of the batch on. */
static bool
cfd_results_hand_on(void)
{
	bool		more = true;

	for (int i = 0; more && i < results.rows; i++)
	{
		ExecStoreMinimalTuple(results.tuples[i], results.slot, false);
		more = results.to->receiveSlot(results.slot, results.to);
	}
	ExecClearTuple(results.slot);
	clear();
	return more;
}

static bool
receive(TupleTableSlot *slot, DestReceiver *self)
{
	MemoryContext before = MemoryContextSwitchTo(results.rows_context);
	MinimalTuple tuple;

	if (results.opened != NULL)
	{
		cfd_envelopes_open_cells(&results.envelopes, slot, results.opened);
		slot = results.opened;
	}
	tuple = ExecCopySlotMinimalTuple(slot);
	MemoryContextSwitchTo(before);
	results.tuples[results.rows++] = tuple;
	results.bytes += tuple->t_len;
	cfd_envelopes_note(&results.envelopes, slot);
	cfd_beside_note(&results.beside);
	if (results.opened != NULL)
		ExecClearTuple(results.opened);
	if (results.rows < Min(cfd_result_batch, CFD_ENVELOPE_ROWS_MAX) &&
		!cfd_envelopes_full(&results.envelopes) && results.bytes < BATCH_BYTES_MAX)
		return true;
	return cfd_results_hand_on();
}

static void
start(DestReceiver *self, int operation, TupleDesc desc)
{
	results.to->rStartup(results.to, operation, desc);
	results.slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	if (cfd_cell_columns(desc) > 0)
		results.opened = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
}

static void
shut_down(DestReceiver *self)
{
	if (results.slot != NULL)
	{
		cfd_results_hand_on();
		ExecDropSingleTupleTableSlot(results.slot);
		results.slot = NULL;
	}
	if (results.opened != NULL)
		ExecDropSingleTupleTableSlot(results.opened);
	results.opened = NULL;
	results.to->rShutdown(results.to);
}

/* The wrapped receiver is destroyed by its creator. */
static void
destroy(DestReceiver *self)
{
}

DestReceiver *
cfd_results_receiver(QueryDesc *query)
{
	DestReceiver *to = query->dest;
	TupleDesc	desc = query->tupDesc;
	MemoryContext before;

	if (cfd_result_batch == 0 || results.context != NULL || desc == NULL ||
		(to->mydest != DestRemote && to->mydest != DestRemoteExecute && to->mydest != DestCopyOut))
		return to;
	if (cfd_protected_columns(desc) + cfd_cell_columns(desc) == 0)
		return to;
	results.context = AllocSetContextCreate(CurrentMemoryContext, "Confide results", ALLOCSET_SMALL_SIZES);
	results.rows_context = AllocSetContextCreate(results.context, "Confide rows", ALLOCSET_DEFAULT_SIZES);
	before = MemoryContextSwitchTo(results.context);
	cfd_envelopes_begin(&results.envelopes, desc, results.rows_context, to->mydest != DestCopyOut, true);
	cfd_beside_begin(&results.beside, query->planstate);
	results.envelopes.beside = &results.beside;
	MemoryContextSwitchTo(before);
	clear();
	results.pub = (DestReceiver) {receive, start, shut_down, destroy, to->mydest};
	results.to = to;
	results.slot = NULL;
	results.opened = NULL;
	return &results.pub;
}

void
cfd_results_end(void)
{
	if (results.context != NULL)
		MemoryContextDelete(results.context);
	results.context = results.rows_context = NULL;
	results.to = NULL;
	results.slot = NULL;
	results.opened = NULL;
	results.rows = 0;
}

void
cfd_results_init(void)
{
	static CfdSource source = {.kind = CFD_FACT_ENVELOPE,.envelope = known_envelope};

	cfd_known_add_source(&cfd_known[CFD_SCOPE_BACKEND], &source);
}
