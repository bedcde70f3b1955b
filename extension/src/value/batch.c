/*
 * batch.c
 *	  Values of many rows of a COPY in one envelope; see batch.h.
 *
 * A batch is removed from the list when the memory of its FmgrInfo is freed,
 * that is at the end of the COPY, whether it succeeds or fails.
 *
 * Invariant: as in batch.h; nothing is read beyond the envelope's length.
 */
#include "postgres.h"

#include "lib/ilist.h"
#include "value/batch.h"
#include "value/place.h"
#include "utils/memutils.h"

typedef struct Batch
{
	dlist_node	node;
	MemoryContextCallback callback;
	CfdFid		first;
	uint32		count;
	uint32		read;			/* values below this number were returned */
	uint32		generation;		/* channel generation that has the values */
	uint8		type;
} Batch;

static dlist_head batches = DLIST_STATIC_INIT(batches);

bool
cfd_is_batch(const unsigned char *envelope)
{
	return envelope[1] == CFD_ORIGIN_CLIENT && (envelope[3] & CFD_ENVELOPE_FLAG_BATCH) != 0;
}

static void
cfd_batch_forget(void *arg)
{
	dlist_delete(&((Batch *) arg)->node);
}

/* The column's batch, or NULL. */
static Batch *
batch_of(FmgrInfo *flinfo)
{
	return cfd_first_call(flinfo) || cfd_is_mark(flinfo->fn_extra) ? NULL : flinfo->fn_extra;
}

static Batch *
make_batch(FmgrInfo *flinfo)
{
	Batch	   *batch = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(Batch));

	batch->callback.func = cfd_batch_forget;
	batch->callback.arg = batch;
	dlist_push_tail(&batches, &batch->node);
	MemoryContextRegisterResetCallback(flinfo->fn_mcxt, &batch->callback);
	flinfo->fn_extra = batch;
	return batch;
}

CfdFid
cfd_take_batch(FmgrInfo *flinfo, const unsigned char *envelope, size_t length, uint8 type, int32 typmod)
{
	CfdWirePutBatch body = {.typmod = typmod,.t = type};
	uint32		count = cfd_get32(envelope + CFD_ENVELOPE_HEADER_BYTES);
	Batch	   *batch;

	if (cfd_mode != CFD_MODE_COPY || flinfo == NULL || count == 0 || count > CFD_BATCH_MAX)
		return 0;
	cfd_begin();
	batch = batch_of(flinfo);
	if (batch == NULL)
		batch = make_batch(flinfo);
	batch->count = 0;
	batch->first = cfd_new_slots(CFD_STATEMENT, count);
	batch->generation = cfd_channel.generation;
	batch->type = type;
	batch->read = 1;
	body.fid = batch->first;
	cfd_send(CFD_KIND_PUT_BATCH, &body, sizeof(body), envelope, length);
	cfd_after_batch();
	batch->count = count;
	return batch->first;
}

CfdFid
cfd_of_batch(FmgrInfo *flinfo, uint32 number, uint8 type)
{
	Batch	   *batch = batch_of(flinfo);

	if (batch == NULL || number >= batch->count || batch->type != type ||
		batch->generation != cfd_channel.generation)
		return 0;
	batch->read = Max(batch->read, number + 1);
	return batch->first + number;
}

CfdFid
cfd_unread(void)
{
	CfdFid		least = cfd_channel.next[CFD_STATEMENT];
	dlist_iter	iter;

	dlist_foreach(iter, &batches)
	{
		const Batch *batch = dlist_container(Batch, node, iter.cur);

		if (batch->read < batch->count && batch->generation == cfd_channel.generation)
			least = Min(least, batch->first);
	}
	return least;
}
