/*
 * handover.c
 *	  Rows that a parallel worker passes to its leader; see handover.h.
 *
 * Rows that needed no message pass at once. The first batches are small, so
 * that a leader that needs few rows does not wait long.
 *
 * Invariant: as in handover.h.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "result/handover.h"
#include "session/channel.h"
#include "utils/memutils.h"

#define FIRST_ROWS 4
#define ROWS_MAX 1024
#define BYTES_MAX (256 * 1024)

typedef struct Handover
{
	DestReceiver pub;
	DestReceiver *to;
	MemoryContext context;		/* memory context of the rows; NULL: no run */
	TupleTableSlot *slot;
	int			rows;
	int			most;			/* size of the current batch in rows */
	Size		bytes;
	MinimalTuple tuples[ROWS_MAX];
} Handover;

static Handover handover;

static bool
hand_over(void)
{
	bool		more = true;

	cfd_fence_outstanding();
	for (int i = 0; more && i < handover.rows; i++)
	{
		ExecStoreMinimalTuple(handover.tuples[i], handover.slot, false);
		more = handover.to->receiveSlot(handover.slot, handover.to);
	}
	ExecClearTuple(handover.slot);
	handover.rows = 0;
	handover.bytes = 0;
	handover.most = Min(handover.most * 2, ROWS_MAX);
	MemoryContextReset(handover.context);
	return more;
}

static bool
handover_receive(TupleTableSlot *slot, DestReceiver *self)
{
	MemoryContext before;
	MinimalTuple tuple;

	if (handover.rows == 0 && !cfd_channel.outstanding)
		return handover.to->receiveSlot(slot, handover.to);
	before = MemoryContextSwitchTo(handover.context);
	tuple = ExecCopySlotMinimalTuple(slot);
	MemoryContextSwitchTo(before);
	handover.tuples[handover.rows++] = tuple;
	handover.bytes += tuple->t_len;
	if (handover.rows < handover.most && handover.bytes < BYTES_MAX)
		return true;
	return hand_over();
}

static void
handover_start(DestReceiver *self, int operation, TupleDesc desc)
{
	handover.to->rStartup(handover.to, operation, desc);
	handover.slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
}

static void
handover_shut_down(DestReceiver *self)
{
	if (handover.slot != NULL)
	{
		hand_over();
		ExecDropSingleTupleTableSlot(handover.slot);
		handover.slot = NULL;
	}
	handover.to->rShutdown(handover.to);
}

/* The wrapped receiver is destroyed by its creator. */
static void
handover_destroy(DestReceiver *self)
{
}

DestReceiver *
cfd_handover_receiver(QueryDesc *query)
{
	DestReceiver *to = query->dest;

	if (!IsParallelWorker() || to->mydest != DestTupleQueue || handover.context != NULL)
		return to;
	handover.context = AllocSetContextCreate(CurrentMemoryContext, "Confide rows for the leader",
											 ALLOCSET_DEFAULT_SIZES);
	handover.pub = (DestReceiver) {handover_receive, handover_start, handover_shut_down, handover_destroy, to->mydest};
	handover.to = to;
	handover.slot = NULL;
	handover.rows = 0;
	handover.bytes = 0;
	handover.most = FIRST_ROWS;
	return &handover.pub;
}

void
cfd_handover_end(void)
{
	if (handover.context != NULL)
		MemoryContextDelete(handover.context);
	handover.context = NULL;
	handover.to = NULL;
	handover.slot = NULL;
	handover.rows = 0;
}
