/*
 * answers.c
 *	  Receiving answers: those awaited now, those awaited later, and those
 *	  that were abandoned. See answers.h.
 *
 * Invariant: as in channel.h.
 */
#include "postgres.h"

#include "session/answers.h"
#include "session/error.h"
#include "utils/memutils.h"

#define ANSWER_KEEP_BYTES (1024 * 1024)

/* ---------- answers ---------- */

static bool
look_for_answer(void *wanted)
{
	if (!cfd_ring_refresh_available(&ch.answers))
	{
		ch.violated = true;
		return true;
	}
	return cfd_ring_available(&ch.answers) >= *(uint64 *) wanted;
}

/* Waits until "wanted" bytes, a small number, are available in the answer ring. */
static inline void
await_bytes(uint64 wanted)
{
	if (cfd_ring_available(&ch.answers) >= wanted)
		return;
	if (!look_for_answer(&wanted))
		cfd_channel_wait_for(look_for_answer, &wanted, &ch.spin_read, false, true);
	if (unlikely(ch.violated))
		cfd_violation("impossible ring position");
}

/* ---------- requests awaited later ---------- */

static void
unlink_pending(CfdRequest *request)
{
	for (CfdRequest **at = &ch.pending; *at != NULL; at = &(*at)->next)
	{
		if (*at == request)
		{
			*at = request->next;
			break;
		}
	}
	if (ch.taker == request)
		ch.taker = NULL;
}

void
cfd_channel_settle(CfdRequest *request, CfdRequestState state)
{
	unlink_pending(request);
	request->state = state;
}

void
cfd_channel_lose_pending(void)
{
	while (ch.pending != NULL)
		cfd_channel_settle(ch.pending, CFD_REQUEST_LOST);
}

/*
 * Handles the header of an answer that nobody waits for right now: finds the
 * pending request, if it still exists, and allocates room for the body.
 */
static void
begin_taking(const CfdHeader *header)
{
	CfdRequest *request = ch.pending;

	while (request != NULL && request->sequence != header->sequence)
		request = request->next;
	ch.taker = request;
	if (request == NULL)
		return;
	if (request->size < header->length)
	{
		char	   *larger = MemoryContextAllocExtended(request->context, header->length,
														MCXT_ALLOC_NO_OOM);

		if (larger == NULL)
		{
			cfd_channel_settle(request, CFD_REQUEST_LOST);
			return;
		}
		pfree(request->answer);
		request->answer = larger;
		request->size = header->length;
	}
	request->length = 0;
	/* Errors are distinguished only after the whole body has arrived. */
	request->state = header->kind == CFD_KIND_ERROR ? CFD_REQUEST_REFUSED : CFD_REQUEST_ANSWERED;
	if (header->length == 0)
		unlink_pending(request);
}

/*
 * Takes available bytes of the current body. They are stored if a pending
 * request wants them, and discarded otherwise.
 */
static void
take_part(uint32 part)
{
	CfdRequest *taker = ch.taker;

	cfd_ring_take(&ch.answers, taker != NULL ? taker->answer + taker->length : NULL, part);
	ch.body_left -= part;
	if (taker == NULL)
		return;
	taker->length += part;
	if (ch.body_left == 0)
		unlink_pending(taker);
}

/* ---------- headers and bodies ---------- */

/* Takes and checks an answer's header, whose bytes are available. */
static CfdHeader
take_header(void)
{
	unsigned char bytes[CFD_MESSAGE_HEADER_BYTES];
	CfdHeader	header;

	cfd_ring_take(&ch.answers, bytes, sizeof(bytes));
	header = cfd_decode_header(bytes);
	ch.body_left = 0;
	if (header.length > CFD_MESSAGE_BODY_MAX ||
		(header.kind != CFD_KIND_ANSWER && header.kind != CFD_KIND_ERROR) ||
		ch.due == 0)
		ch.violated = true;
	else
	{
		ch.due--;
		ch.body_left = header.length;
	}
	return header;
}

/* Processes what has arrived of answers that nobody waits for right now. */
void
cfd_channel_skip_answers(void)
{
	if (!cfd_ring_refresh_available(&ch.answers))
		ch.violated = true;
	while (!ch.violated)
	{
		uint64		available = cfd_ring_available(&ch.answers);

		if (ch.body_left > 0 && available > 0)
			take_part(Min(available, ch.body_left));
		else if (ch.body_left == 0 && ch.due > 0 && available >= CFD_MESSAGE_HEADER_BYTES)
		{
			CfdHeader	header = take_header();

			if (!ch.violated)
				begin_taking(&header);
		}
		else
			break;
	}
	cfd_channel_publish_answers();
}

/* Takes the rest of such an answer, waiting for its bytes. */
static void
take_rest(void)
{
	while (ch.body_left > 0)
	{
		await_bytes(1);
		take_part(Min(cfd_ring_available(&ch.answers), ch.body_left));
		if (ch.answers.mine - ch.answers.published >= CFD_PUBLISH_PART(&ch.answers))
			cfd_channel_publish_answers();
	}
}

/* Copies bytes of the current answer's body, waiting for them. */
static void
take_body(char *to, uint32 length)
{
	while (length > 0)
	{
		uint32		part;

		await_bytes(1);
		part = Min(cfd_ring_available(&ch.answers), length);
		cfd_ring_take(&ch.answers, to, part);
		to += part;
		length -= part;
		ch.body_left -= part;
		if (ch.answers.mine - ch.answers.published >= CFD_PUBLISH_PART(&ch.answers))
			cfd_channel_publish_answers();
	}
}

static void
reserve_answer(uint32 length)
{
	uint32		size = Max(length, 1024);

	if (ch.answer != NULL && ch.answer_size >= length &&
		(ch.answer_size <= ANSWER_KEEP_BYTES || length > ANSWER_KEEP_BYTES))
		return;
	if (ch.answer != NULL)
		pfree(ch.answer);
	ch.answer = NULL;
	ch.answer = MemoryContextAlloc(TopMemoryContext, size);
	ch.answer_size = size;
}

void
cfd_channel_receive_answer(uint32 sequence, uint32 *length)
{
	for (;;)
	{
		CfdHeader	header;

		take_rest();
		await_bytes(CFD_MESSAGE_HEADER_BYTES);
		header = take_header();
		if (unlikely(ch.violated))
			cfd_violation("impossible answer");
		if (header.sequence != sequence)
		{
			if ((int32) (sequence - header.sequence) <= 0)
				cfd_violation("answer to a request that was not sent");
			begin_taking(&header);	/* awaited later, or abandoned */
			continue;
		}
		ch.taker = NULL;
		reserve_answer(header.length);
		take_body(ch.answer, header.length);
		ch.outstanding = false;
		if (unlikely(header.kind == CFD_KIND_ERROR))
			cfd_raise_error(ch.answer, header.length);
		*length = header.length;
		return;
	}
}

static bool
is_pending(const CfdRequest *request)
{
	for (const CfdRequest *at = ch.pending; at != NULL; at = at->next)
	{
		if (at == request)
			return true;
	}
	return false;
}

bool
cfd_await_refusal(CfdRequest *request)
{
	if (ch.held)
	{
		ch.held = false;
		cfd_channel_publish_requests();
	}
	while (is_pending(request))
	{
		CfdHeader	header;

		take_rest();
		if (!is_pending(request))
			break;
		await_bytes(CFD_MESSAGE_HEADER_BYTES);
		header = take_header();
		if (unlikely(ch.violated))
			cfd_violation("impossible answer");
		if ((int32) (request->sequence - header.sequence) < 0)
			cfd_violation("answer to a request that was not sent");
		begin_taking(&header);
	}
	return request->state == CFD_REQUEST_REFUSED;
}

const char *
cfd_await(CfdRequest *request, uint32 *length)
{
	if (cfd_await_refusal(request))
		cfd_raise_error(request->answer, request->length);
	if (request->state != CFD_REQUEST_ANSWERED)
		cfd_channel_keeper_is_gone();
	*length = request->length;
	return request->answer;
}
