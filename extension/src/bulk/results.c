/*
 * results.c
 *	  A receiver that holds rows back and fetches envelopes: see results.h.
 *
 * Rows of a batch are copied; their values are noted in the order in which the
 * real receiver will have them written, which is how an output function finds
 * its envelope: it is the next one. One batch exists at a time: only the
 * outermost statement writes to the client.
 *
 * Invariant: as in results.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "bulk/results.h"
#include "channel/channel.h"
#include "executor/tuptable.h"
#include "types/types.h"
#include "utils/memutils.h"

#define ENTRY_BYTES CFD_FIXED_GET_ENVELOPE
#define FIRST_ROOM 64
#define BATCH_ROWS_MAX 4096
#define BATCH_VALUES_MAX 16384
#define BATCH_BYTES_MAX (512 * 1024)

int			cfd_result_batch = 1024;

typedef struct Results
{
	DestReceiver pub;
	DestReceiver *to;
	MemoryContext context;		/* NULL: no run */
	MemoryContext rows_context;
	TupleTableSlot *slot;
	int			columns;		/* protected ones, their numbers and types */
	AttrNumber *numbers;
	uint8	   *types;
	int			rows;
	MinimalTuple tuples[BATCH_ROWS_MAX];
	Size		bytes;
	int			values;			/* noted as the request has them */
	int			room;
	unsigned char *asked;
	char	   *fetched;		/* the answer: its length, how far it is used */
	uint32		fetched_length;
	uint32		fetched_used;
	int			next;			/* value whose envelope is next in it */
} Results;

static Results results;

bool
cfd_results_envelope(CfdFid fid, uint8 type, const char **envelope, uint32 *length)
{
	const unsigned char *entry = results.asked + (Size) results.next * ENTRY_BYTES;
	uint32		left = results.fetched_length - results.fetched_used;
	uint32		bytes;

	if (likely(left < sizeof(uint32)) || results.next >= results.values ||
		cfd_get64(entry) != fid || entry[8] != type)
		return false;
	bytes = cfd_get32(results.fetched + results.fetched_used);
	if (bytes == 0 || bytes > left - sizeof(uint32))
		cfd_violation("impossible length of an envelope");
	*envelope = results.fetched + results.fetched_used + sizeof(uint32);
	*length = bytes;
	results.fetched_used += sizeof(uint32) + bytes;
	results.next++;
	return true;
}

/* Fetches the envelopes of the batch. */
static void
fetch(void)
{
	const char *answer;
	uint32		length;

	answer = cfd_call(CFD_KIND_GET_ENVELOPES, NULL, 0, results.asked,
					  (uint64) results.values * ENTRY_BYTES, &length);
	results.fetched = MemoryContextAllocHuge(results.rows_context, Max(length, 1));
	memcpy(results.fetched, answer, length);
	results.fetched_length = length;
}

static void
clear(void)
{
	results.rows = results.values = results.next = 0;
	results.bytes = 0;
	results.fetched = NULL;
	results.fetched_length = results.fetched_used = 0;
	MemoryContextReset(results.rows_context);
}

/* Hands the rows of the batch on. */
static bool
hand_on(void)
{
	bool		more = true;

	if (results.values > 1)
		fetch();
	for (int i = 0; more && i < results.rows; i++)
	{
		ExecStoreMinimalTuple(results.tuples[i], results.slot, false);
		more = results.to->receiveSlot(results.slot, results.to);
	}
	ExecClearTuple(results.slot);
	clear();
	return more;
}

static void
note_value(CfdFid fid, uint8 type)
{
	unsigned char *entry;

	if (results.values == results.room)
	{
		results.room *= 4;
		results.asked = repalloc(results.asked, (Size) results.room * ENTRY_BYTES);
	}
	entry = results.asked + (Size) results.values++ * ENTRY_BYTES;
	memset(entry, 0, ENTRY_BYTES);
	cfd_put64(entry, fid);
	entry[8] = type;
}

static bool
receive(TupleTableSlot *slot, DestReceiver *self)
{
	MemoryContext before = MemoryContextSwitchTo(results.rows_context);
	MinimalTuple tuple = ExecCopySlotMinimalTuple(slot);

	MemoryContextSwitchTo(before);
	results.tuples[results.rows++] = tuple;
	results.bytes += tuple->t_len;
	for (int i = 0; i < results.columns; i++)
	{
		bool		is_null;
		Datum		value = slot_getattr(slot, results.numbers[i], &is_null);

		if (!is_null)
			note_value(DatumGetUInt64(value), results.types[i]);
	}
	if (results.rows < Min(cfd_result_batch, BATCH_ROWS_MAX) &&
		results.values + results.columns <= BATCH_VALUES_MAX &&
		results.bytes < BATCH_BYTES_MAX)
		return true;
	return hand_on();
}

static void
start(DestReceiver *self, int operation, TupleDesc desc)
{
	results.to->rStartup(results.to, operation, desc);
	results.slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
}

static void
shut_down(DestReceiver *self)
{
	if (results.slot != NULL)
	{
		hand_on();
		ExecDropSingleTupleTableSlot(results.slot);
		results.slot = NULL;
	}
	results.to->rShutdown(results.to);
}

/* The real receiver is destroyed by whoever made it. */
static void
destroy(DestReceiver *self)
{
}

/* How many columns are protected; notes them where there is room for that. */
static int
protected_columns(TupleDesc desc, AttrNumber *numbers, uint8 *types)
{
	int			columns = 0;

	for (int i = 0; i < desc->natts; i++)
	{
		uint8		type = cfd_type_code(TupleDescAttr(desc, i)->atttypid);

		if (type == 0)
			continue;
		if (numbers != NULL)
		{
			numbers[columns] = i + 1;
			types[columns] = type;
		}
		columns++;
	}
	return columns;
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
	results.columns = protected_columns(desc, NULL, NULL);
	if (results.columns == 0)
		return to;
	results.context = AllocSetContextCreate(CurrentMemoryContext, "Confide results", ALLOCSET_SMALL_SIZES);
	results.rows_context = AllocSetContextCreate(results.context, "Confide rows", ALLOCSET_DEFAULT_SIZES);
	before = MemoryContextSwitchTo(results.context);
	results.numbers = palloc(results.columns * sizeof(AttrNumber));
	results.types = palloc(results.columns);
	protected_columns(desc, results.numbers, results.types);
	results.room = Max(results.columns, FIRST_ROOM);
	results.asked = palloc((Size) results.room * ENTRY_BYTES);
	MemoryContextSwitchTo(before);
	clear();
	results.pub = (DestReceiver) {receive, start, shut_down, destroy, to->mydest};
	results.to = to;
	results.slot = NULL;
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
	results.asked = NULL;
	results.fetched = NULL;
	results.rows = results.values = results.next = 0;
	results.fetched_length = results.fetched_used = 0;
}
