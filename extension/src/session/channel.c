/*
 * channel.c
 *	  Sending requests and waiting for the keeper; see channel.h.
 *
 * A wait proceeds as follows: look; spin; set the sleep flag; pass a full
 * memory barrier; look again; then wait for the latch, the socket or
 * postmaster death. A cancel between messages leaves the channel usable: the
 * answer that is no longer wanted is recognised by its sequence number and
 * skipped. A cancel in the middle of writing a message that is longer than the
 * ring leaves `sending` set, and the channel is reopened at its next use.
 *
 * Requests that are awaited later are kept in a list. Whoever waits for
 * something else moves their answers from the ring to their own buffers.
 *
 * Invariant: whatever the keeper writes is copied once and the copy is
 * checked; the worst outcome is an ERROR.
 */
#include "postgres.h"

#include <sys/socket.h>

#include "access/xact.h"
#include "session/answers.h"
#include "session/arena.h"
#include "session/channel.h"
#include "session/error.h"
#include "session/events.h"
#include "session/session.h"
#include "session/ticket.h"
#include "session/told.h"
#include "compat/compat.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/*
 * A sleeping keeper is woken for one-way messages once this many bytes wait in
 * the ring.
 */
#define QUIET_BYTES 4096
/* ... or this many of messages that have no effect before the commit. */
#define DEFERRED_BYTES (16 * 1024)
#define HINT_GONE "The statement had no effect; check that confide-keeper runs, then try again."
/* Interval, in ms, at which a wait with a time limit looks at the clock. */
#define LOOK_MS 100

int			cfd_locked_timeout = 30000;

CfdChannel	cfd_channel = {.link.sock = -1};

bool		cfd_one_way = true;

int			cfd_fenced_plans = 0;

/* ---------- opening and closing ---------- */

void
cfd_channel_close(void)
{
	ch.ready = false;
	if (!ch.connected)
		return;
	ch.connected = false;
	if (ch.had_client)
		ch.lost_client = true;
	ch.had_client = false;
	ch.watched = ch.query_told = 0;
	ch.sending = ch.ended = ch.violated = ch.clock_told = false;
	ch.outstanding = ch.deferred = ch.unasked = ch.forget = ch.held = false;
	ch.due = ch.body_left = 0;
	cfd_channel_lose_pending();
	memset(&ch.settings, 0, sizeof(ch.settings));
	cfd_arena_reset();
	cfd_session_clear();
	if (ch.waits != NULL)
		FreeWaitEventSet(ch.waits);
	ch.waits = NULL;
	cfd_disconnect(&ch.link);
}

void
cfd_channel_close_broken(void)
{
	if (ch.connected && (ch.sending || ch.ended || ch.violated))
		cfd_channel_close();
}

void
cfd_channel_keeper_is_gone(void)
{
	cfd_channel_close();
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("Confide's keeper is gone"),
			 errhint(HINT_GONE)));
}

void
cfd_violation(const char *what)
{
	cfd_channel_close();
	ereport(ERROR,
			(errcode(ERRCODE_PROTOCOL_VIOLATION),
			 errmsg("Confide's keeper broke the contract of the channel: %s", what),
			 errhint("This is a defect: please report it.")));
}

static void
open_channel(void)
{
	CfdSession	leader = {0};
	bool		join = cfd_session_leader(&leader);

	cfd_connect(&ch.link, join ? leader.id : 0, leader.pass);
	cfd_ring_init(&ch.requests, ch.link.base, CFD_REQUEST_CONTROL, CFD_REQUEST_DATA, CFD_REQUEST_RING_BYTES);
	cfd_ring_init(&ch.answers, ch.link.base, CFD_ANSWER_CONTROL, CFD_ANSWER_DATA, CFD_ANSWER_RING_BYTES);
	cfd_spin_init(&ch.spin_read);
	cfd_spin_init(&ch.spin_write);
	ch.connected = true;
	ch.sequence = 0;
	ch.generation++;
	cfd_forget_constants();
	ch.ticket_told = !cfd_has_ticket();
	PG_TRY();
	{
		ch.waits = CFD_CREATE_WAIT_SET(3);
		AddWaitEventToSet(ch.waits, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
		AddWaitEventToSet(ch.waits, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
		AddWaitEventToSet(ch.waits, WL_SOCKET_READABLE, ch.link.sock, NULL, NULL);
	}
	PG_CATCH();
	{
		cfd_channel_close();
		PG_RE_THROW();
	}
	PG_END_TRY();
	cfd_arena_open(ch.link.welcome.arena);
}

/* Discards wake-up bytes from the socket, and detects that the keeper has hung up. */
static void
drain_socket(void)
{
	char		bytes[64];
	ssize_t		got;

	do
		got = recv(ch.link.sock, bytes, sizeof(bytes), MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK))
		ch.ended = true;
}

void
cfd_channel_look_after(void)
{
	if (ch.ready)
		return;
	/* If the keeper goes, a transaction that has sent deferred messages fails at its commit anyway. */
	if (ch.connected && !ch.sending && !ch.violated && !ch.deferred)
		drain_socket();
	if (ch.ended && (ch.outstanding || cfd_arena_in_use()))
		cfd_channel_keeper_is_gone();
	cfd_channel_close_broken();
	if (!ch.connected)
		open_channel();
	cfd_arena_watch();
	ch.ready = true;
}

void
cfd_channel_prepare(void)
{
	cfd_channel_look_after();
	if (ch.forget)
	{
		cfd_write_prepared(CFD_KIND_FORGET, NULL, 0, NULL, 0, false);
		ch.forget = false;
	}
	if (!ch.ticket_told)
		cfd_tell_ticket();
	if (!cfd_settings_told())
		cfd_tell_settings();
	if (!ch.clock_told)
		cfd_tell_clock();
	cfd_tell_statement();
}

/* ---------- waking and waiting ---------- */

static void
wake_keeper(void)
{
	ssize_t		sent;

	do
		sent = send(ch.link.sock, "\1", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
		ch.ready = false;		/* hung up: detected at the next use */
}

void
cfd_channel_publish_requests(void)
{
	if (ch.held)
		cfd_ring_publish_quietly(&ch.requests, CFD_CONTROL_WRITTEN);
	else if (cfd_ring_publish(&ch.requests, CFD_CONTROL_WRITTEN, CFD_CONTROL_READER_SLEEPS))
		wake_keeper();
}

bool
cfd_channel_has_idle_cpus(void)
{
	return ch.spin_read.budget_ns > 0;
}

/*
 * Publishes one-way messages. Waking a sleeping keeper costs two context
 * switches. If there are idle CPUs, the keeper should start at once. Otherwise
 * it finds the messages when it is woken for one that is answered.
 */
static void
publish_one_way(void)
{
	if (cfd_channel_has_idle_cpus() || ch.requests.mine - ch.requests.announced > QUIET_BYTES)
		cfd_channel_publish_requests();
	else
		cfd_ring_publish_quietly(&ch.requests, CFD_CONTROL_WRITTEN);
}

void
cfd_channel_publish_answers(void)
{
	if (cfd_ring_publish(&ch.answers, CFD_CONTROL_READ, CFD_CONTROL_WRITER_SLEEPS))
		wake_keeper();
}

/*
 * PostgreSQL holds off interrupts while a page is locked, and an index
 * comparison may ask the keeper then. Other backends wait for that page
 * uninterruptibly, so such a wait is limited and looks at pending interrupts
 * itself. This must not happen during commit or abort, which cannot fail.
 */
static bool
waits_locked(void)
{
	return InterruptHoldoffCount > 0 && CritSectionCount == 0 && IsTransactionState();
}

static void
end_locked_wait(TimestampTz began)
{
	if (QueryCancelPending || ProcDiePending)
		ereport(ERROR,
				(errcode(ERRCODE_QUERY_CANCELED),
				 errmsg("canceling statement that waits for Confide's keeper")));
	if (TimestampDifferenceExceeds(began, GetCurrentTimestamp(), cfd_locked_timeout))
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("Confide's keeper does not answer"),
				 errdetail("A page of an index was locked for %d ms (confide.locked_timeout).",
						   cfd_locked_timeout),
				 errhint(HINT_GONE)));
}

/*
 * Sleeps until look(arg) returns true or nothing more can arrive. The flags
 * tell the keeper what to wake us for.
 */
void
cfd_channel_wait_for(bool (*look) (void *), void *arg, CfdSpin *spin, bool room, bool answers)
{
	TimestampTz began;

	ch.held = false;
	cfd_channel_publish_requests();
	if (cfd_spin(spin, look, arg))
		return;
	cfd_channel_publish_answers();
	began = waits_locked() ? GetCurrentTimestamp() : 0;
	while (!ch.ended)
	{
		WaitEvent	event;

		if (room)
			cfd_ring_sleeps(&ch.requests, CFD_CONTROL_WRITER_SLEEPS, true);
		if (answers)
			cfd_ring_sleeps(&ch.answers, CFD_CONTROL_READER_SLEEPS, true);
		pg_memory_barrier();
		if (look(arg))
			break;
		if (WaitEventSetWait(ch.waits, began != 0 ? LOOK_MS : -1, &event, 1, cfd_wait_event()) == 1)
		{
			if (event.events & WL_LATCH_SET)
				ResetLatch(MyLatch);
			if (event.events & WL_SOCKET_READABLE)
				drain_socket();
		}
		CHECK_FOR_INTERRUPTS();
		if (began != 0)
			end_locked_wait(began);
	}
	if (room)
		cfd_ring_sleeps(&ch.requests, CFD_CONTROL_WRITER_SLEEPS, false);
	if (answers)
		cfd_ring_sleeps(&ch.answers, CFD_CONTROL_READER_SLEEPS, false);
	cfd_spin_woken(spin);
	/* What the keeper wrote before it hung up still counts. */
	if (ch.ended && !look(arg))
		cfd_channel_keeper_is_gone();
}

/* ---------- requests ---------- */

static bool
look_for_room(void *wanted)
{
	if (ch.due > 0 || ch.body_left > 0)
		cfd_channel_skip_answers();
	if (!cfd_ring_refresh_room(&ch.requests))
		ch.violated = true;
	return ch.violated || cfd_ring_room(&ch.requests) >= *(uint64 *) wanted;
}

static void
await_room(uint64 wanted)
{
	if (!look_for_room(&wanted))
		cfd_channel_wait_for(look_for_room, &wanted, &ch.spin_write, true, ch.due > 0);
	if (unlikely(ch.violated))
		cfd_violation("impossible ring position");
}

/* Writes bytes of a message that is longer than the ring, piece by piece. */
static void
stream(const char *bytes, uint64 length)
{
	while (length > 0)
	{
		uint64		part;

		await_room(1);
		part = Min(Min(cfd_ring_room(&ch.requests), length), CFD_PUBLISH_PART(&ch.requests));
		cfd_ring_put(&ch.requests, bytes, part);
		cfd_channel_publish_requests();
		bytes += part;
		length -= part;
	}
}

static void
too_long(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("value or batch is longer than the %d bytes that Confide's channel takes",
					CFD_MESSAGE_BODY_MAX)));
}

/*
 * Writes and publishes a message that is small enough to be sent inline and
 * for which there is room.
 */
static inline void
write_small(const unsigned char *header, const void *fixed, uint32 fixed_length,
			const void *tail, uint32 tail_length, bool soon)
{
	uint64		bytes[CFD_BESIDE_WORDS] = {0};
	uint64		total = CFD_MESSAGE_HEADER_BYTES + fixed_length + tail_length;
	char	   *to = (char *) bytes + CFD_MESSAGE_HEADER_BYTES;
	bool		wake;

	memcpy(bytes, header, CFD_MESSAGE_HEADER_BYTES);
	if (fixed_length > 0)
		memcpy(to, fixed, fixed_length);
	if (tail_length > 0)
		memcpy(to + fixed_length, tail, tail_length);
	cfd_ring_put(&ch.requests, bytes, total);
	if (!soon)
	{
		publish_one_way();
		return;
	}
	if (total <= CFD_BESIDE_BYTES && ch.requests.mine - ch.requests.published == total)
		wake = cfd_ring_publish_beside(&ch.requests, bytes, total);
	else
		wake = cfd_ring_publish(&ch.requests, CFD_CONTROL_WRITTEN, CFD_CONTROL_READER_SLEEPS);
	if (unlikely(wake))
		wake_keeper();
}

/*
 * Writes and publishes a message, and returns its sequence number. The channel
 * must be open and prepared. Set "soon" if somebody waits for the effect, or
 * if the work takes longer than waking the keeper.
 */
uint32
cfd_write_prepared(uint16 kind, const void *fixed, uint32 fixed_length, const void *tail, uint64 tail_length,
			   bool soon)
{
	unsigned char header[CFD_MESSAGE_HEADER_BYTES];
	uint64		body = (uint64) fixed_length + tail_length;
	uint64		total = body + sizeof(header);
	uint32		sequence;

	if (unlikely(total > cfd_ring_room(&ch.requests)) && total <= ch.requests.size / 2)
		await_room(total);		/* a cancel here leaves no partial message */
	sequence = ++ch.sequence;
	cfd_encode_header(header, body, kind, sequence);
	if (likely(total <= CFD_SMALL_BYTES && total <= cfd_ring_room(&ch.requests)))
	{
		write_small(header, fixed, fixed_length, tail, tail_length, soon);
		return sequence;
	}
	if (likely(total <= cfd_ring_room(&ch.requests)))
	{
		cfd_ring_put(&ch.requests, header, sizeof(header));
		if (fixed_length > 0)
			cfd_ring_put(&ch.requests, fixed, fixed_length);
		if (tail_length > 0)
			cfd_ring_put(&ch.requests, tail, tail_length);
		if (soon)
			cfd_channel_publish_requests();
		else
			publish_one_way();
		return sequence;
	}
	ch.sending = true;
	ch.ready = false;
	stream((const char *) header, sizeof(header));
	stream(fixed, fixed_length);
	stream(tail, tail_length);
	ch.sending = false;
	ch.ready = true;
	return sequence;
}

static inline uint32
write_message(uint16 kind, const void *fixed, uint32 fixed_length, const void *tail, uint64 tail_length,
			  bool soon)
{
	if (unlikely((uint64) fixed_length + tail_length > CFD_MESSAGE_BODY_MAX))
		too_long();
	cfd_begin();
	return cfd_write_prepared(kind, fixed, fixed_length, tail, tail_length, soon);
}

void
cfd_send(uint16 kind, const void *fixed, uint32 fixed_length, const void *tail, uint64 tail_length)
{
	write_message(kind, fixed, fixed_length, tail, tail_length, false);
	ch.outstanding = true;
}

void
cfd_send_deferred(uint16 kind, const void *fixed, uint32 fixed_length, const void *tail, uint64 tail_length)
{
	bool		held = ch.held;

	if (fixed_length + tail_length > CFD_MESSAGE_BODY_MAX)
		too_long();
	cfd_begin();
	if (ch.requests.mine - ch.requests.announced < DEFERRED_BYTES)
		ch.held = true;
	(void) cfd_write_prepared(kind, fixed, fixed_length, tail, tail_length, false);
	if (!held)
		ch.held = false;
	ch.deferred = true;
}

void
cfd_send_rows(uint16 kind, const void *fixed, uint32 fixed_length,
			  const void *tail, uint64 tail_length, int rows)
{
	write_message(kind, fixed, fixed_length, tail, tail_length, rows > CFD_FEW_VALUES);
	ch.outstanding = true;
}

const char *
cfd_call(uint16 kind, const void *fixed, uint32 fixed_length,
		 const void *tail, uint64 tail_length, uint32 *length)
{
	uint32		sequence = write_message(kind, fixed, fixed_length, tail, tail_length, true);

	ch.due++;
	cfd_channel_receive_answer(sequence, length);
	return ch.answer;
}

static void
drop_callback(void *request)
{
	((CfdRequest *) request)->answer = NULL;
	cfd_drop(request);
}

void
cfd_request_init(CfdRequest *request)
{
	memset(request, 0, sizeof(*request));
	request->context = CurrentMemoryContext;
	request->callback.func = drop_callback;
	request->callback.arg = request;
	MemoryContextRegisterResetCallback(request->context, &request->callback);
}

void
cfd_request(CfdRequest *request, uint16 kind, const void *fixed, uint32 fixed_length,
			const void *tail, uint64 tail_length, uint32 expected)
{
	CfdRequest **last = &ch.pending;

	cfd_drop(request);
	if (request->size < expected)
	{
		if (request->answer != NULL)
			pfree(request->answer);
		request->size = 0;
		request->answer = MemoryContextAlloc(request->context, expected);
		request->size = expected;
	}
	request->sequence = write_message(kind, fixed, fixed_length, tail, tail_length, true);
	ch.due++;
	while (*last != NULL)
		last = &(*last)->next;
	request->next = NULL;
	request->state = CFD_REQUEST_SENT;
	*last = request;
}

void
cfd_drop(CfdRequest *request)
{
	cfd_channel_settle(request, CFD_REQUEST_IDLE);
}

void
cfd_fence(void)
{
	uint32		length;

	cfd_call(CFD_KIND_FENCE, NULL, 0, NULL, 0, &length);
}

void
cfd_fence_outstanding(void)
{
	if (ch.connected && (ch.outstanding || cfd_channel_failed()))
		cfd_fence();
}

bool
cfd_try_send(uint16 kind, const void *fixed, uint32 fixed_length, bool soon)
{
	unsigned char header[CFD_MESSAGE_HEADER_BYTES];
	uint64		total = sizeof(header) + fixed_length;

	if (!ch.connected || ch.sending || ch.ended || ch.violated)
		return false;
	if (!cfd_ring_refresh_room(&ch.requests) || cfd_ring_room(&ch.requests) < total)
		return false;
	cfd_encode_header(header, fixed_length, kind, ++ch.sequence);
	cfd_ring_put(&ch.requests, header, sizeof(header));
	cfd_ring_put(&ch.requests, fixed, fixed_length);
	if (soon)
		cfd_channel_publish_requests();
	else
		cfd_ring_publish_quietly(&ch.requests, CFD_CONTROL_WRITTEN);
	return true;
}
