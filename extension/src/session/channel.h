/*
 * channel.h
 *	  This backend's channel to the keeper: one-way messages and answered
 *	  requests.
 *
 * Sends, waits and reports errors. Does not interpret messages, except those
 * about the channel itself (Fence, Forget, Release, Settings). A backend has
 * at most one channel. It is opened at first use, and again after a restart of
 * the keeper. On a standby, a message waits until the keeper knows every FID
 * that the message can name.
 *
 * Invariants: requests are numbered, and an answer is accepted only for the
 * request that waits for it; waits can be cancelled and terminated; an error
 * leaves the channel either usable or closed, never with a message half
 * written.
 */
#ifndef CFD_SESSION_CHANNEL_H
#define CFD_SESSION_CHANNEL_H

#include "postgres.h"
#include "compat/compat.h"
#include "session/connect.h"
#include "wire/ring.h"
#include "wire/spin.h"
#include "pgtime.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/bytea.h"
#include "utils/palloc.h"
#include "utils/float.h"
#include "session/gate.h"

/* Longest wait while a page lock is held, in milliseconds (GUC). */
extern int	cfd_locked_timeout;

/* The two arenas of a channel; see "lifetime" in docs/decisions.md. */
typedef enum CfdArena
{
	CFD_STATEMENT = 0,
	CFD_PLAN = 1
} CfdArena;

typedef enum CfdRequestState
{
	CFD_REQUEST_IDLE,
	CFD_REQUEST_SENT,
	CFD_REQUEST_ANSWERED,
	CFD_REQUEST_REFUSED,		/* answered with an error */
	CFD_REQUEST_LOST			/* no answer can arrive, or there was no memory for it */
} CfdRequestState;

/* A request that is sent now and awaited later. */
typedef struct CfdRequest
{
	CfdRequestState state;
	uint32		sequence;
	char	   *answer;
	uint32		length;			/* bytes of the answer received so far */
	uint32		size;			/* allocated size of the answer buffer */
	MemoryContext context;		/* memory context of the answer buffer */
	MemoryContextCallback callback;
	struct CfdRequest *next;	/* next request that was sent later */
} CfdRequest;

/* Settings of the SQL session as last sent to the keeper. */
typedef struct CfdSettings
{
	pg_tz	   *timezone;
	int			date_style;
	int			date_order;
	int			interval_style;
	int			extra_float_digits;
	int			bytea_output;
} CfdSettings;

typedef struct CfdChannel
{
	bool		ready;			/* open, and checked during this client message */
	bool		clock_told;		/* the transaction's start time was sent */
	bool		ticket_told;	/* confide.restore_ticket was sent */
	bool		connected;
	bool		sending;		/* a message is partly written */
	bool		ended;			/* the keeper closed the connection */
	bool		violated;		/* the keeper broke the protocol */
	bool		outstanding;	/* one-way requests were sent since the last answer */
	bool		deferred;		/* ... whose errors are told at the commit */
	bool		unasked;		/* ... whose errors matter only to who uses their values */
	bool		forget;			/* Forget must be sent before anything else */
	bool		held;			/* do not wake the keeper before we wait */
	bool		had_client;		/* a handshake has succeeded */
	bool		lost_client;	/* ... in a session that has ended */
	uint32		generation;		/* number of connections made by this backend */
	bool		kept_constants; /* plans may have constants of routines' texts */
	uint32		clients;		/* number of handshakes made by this backend */
	uint64		watched;		/* what the keeper has said of a recording (CFD_WATCH_OFFSET) */
	uint64		query;			/* identifier of the outermost statement's query; 0: unknown */
	uint64		query_told;		/* ... as last sent to the keeper */
	uint32		sequence;		/* of the last request */
	uint32		due;			/* answers not yet taken from the ring */
	uint32		body_left;		/* bytes left of an answer that is being skipped or stored */
	CfdRequest *taker;			/* request those bytes are for; NULL: discard */
	CfdRequest *pending;		/* requests sent and not answered yet */
	uint64		next[2];		/* next FID of each arena */
	uint64		kept;			/* first FID of the statement arena that is not released */
	CfdSettings settings;
	CfdRing		requests;
	CfdRing		answers;
	CfdSpin		spin_read;
	CfdSpin		spin_write;
	CfdLink		link;
	WaitEventSet *waits;
	char	   *answer;			/* body of the last answer */
	uint32		answer_size;
} CfdChannel;

extern CfdChannel cfd_channel;

/* Slow path of cfd_begin: opens the channel, or brings it up to date. */
extern void cfd_channel_prepare(void);
/*
 * Opens the channel, or detects that it has ended. Acts at its first call in a
 * client message only. Sends nothing.
 */
extern void cfd_channel_look_after(void);

static inline bool
cfd_settings_told(void)
{
	return cfd_channel.ticket_told &&
		cfd_channel.settings.timezone == session_timezone &&
		cfd_channel.settings.date_style == DateStyle &&
		cfd_channel.settings.date_order == DateOrder &&
		cfd_channel.settings.interval_style == IntervalStyle &&
		cfd_channel.settings.extra_float_digits == extra_float_digits &&
		cfd_channel.settings.bytea_output == bytea_output;
}

/* Must be called before slots are numbered for a message. */
static inline void
cfd_begin(void)
{
	cfd_state_catch_up();
	if (unlikely(!cfd_channel.ready || !cfd_channel.clock_told || !cfd_settings_told()))
		cfd_channel_prepare();
}

/*
 * Looks whether a recording has begun, to be called before plans with constants
 * are used.
 */
extern void cfd_channel_watch(void);

/*
 * What follows belongs to the outermost statement with this query identifier
 * (0: not known yet). Sent with the next request, if a recording asks for it.
 */
static inline void
cfd_statement_is(uint64 query)
{
	cfd_channel.query = query;
	if (unlikely((cfd_channel.watched & CFD_WATCH_STATEMENTS) != 0) && query != cfd_channel.query_told)
		cfd_channel.ready = false;
}

/* Numbers a slot. The caller has called cfd_begin for the same message. */
static inline CfdFid
cfd_new_slot(CfdArena arena)
{
	return cfd_channel.next[arena]++;
}

/* Numbers consecutive slots and returns the first. */
static inline CfdFid
cfd_new_slots(CfdArena arena, uint32 count)
{
	CfdFid		first = cfd_channel.next[arena];

	cfd_channel.next[arena] += count;
	return first;
}

/* Sends a one-way request, consisting of a fixed part and a tail (may be NULL). */
extern void cfd_send(uint16 kind, const void *fixed, uint32 fixed_length,
					 const void *tail, uint64 tail_length);
/*
 * As cfd_send, for what has no effect before the commit: its error is told
 * then, unless an answer brings it earlier, and no statement waits for it. Much
 * of it may wait in the ring before a sleeping keeper is woken.
 */
extern void cfd_send_deferred(uint16 kind, const void *fixed, uint32 fixed_length,
							  const void *tail, uint64 tail_length);
/*
 * As cfd_send, for a message about "rows" rows. For many rows a sleeping
 * keeper is woken at once, even if the message itself is short because it
 * consists of runs.
 */
extern void cfd_send_rows(uint16 kind, const void *fixed, uint32 fixed_length,
						  const void *tail, uint64 tail_length, int rows);
/*
 * Sends a request and waits for its answer. The answer stays valid until the
 * next call. An error answer is raised as an ERROR.
 */
extern const char *cfd_call(uint16 kind, const void *fixed, uint32 fixed_length,
							const void *tail, uint64 tail_length, uint32 *length);
/*
 * Requests that overlap: cfd_request sends now, cfd_await waits later, and
 * other requests may be sent and answered in between. A request belongs to the
 * memory context that is current in cfd_request_init, and is abandoned when
 * that context is reset. "expected" is the expected size of the answer in
 * bytes. cfd_await raises an error answer; otherwise the answer stays valid
 * until the request is used again.
 */
extern void cfd_request_init(CfdRequest *request);
extern void cfd_request(CfdRequest *request, uint16 kind, const void *fixed, uint32 fixed_length,
						const void *tail, uint64 tail_length, uint32 expected);
extern const char *cfd_await(CfdRequest *request, uint32 *length);
/* Waits for the answer. Returns whether it is an error, which is not raised. */
extern bool cfd_await_refusal(CfdRequest *request);
/*
 * Announces that several requests follow. A sleeping keeper is then woken
 * once, when the first of them is awaited, instead of once per request.
 */
static inline void
cfd_hold(void)
{
	cfd_channel.held = true;
}

/* Abandons a request if it was sent. Does not wait. */
extern void cfd_drop(CfdRequest *request);
/* Waits until everything sent has been processed. Raises errors of one-way requests. */
extern void cfd_fence(void);
/*
 * Whether the keeper has the error of a one-way request that no answer told: answers to batches do not tell those.
 */
static inline bool
cfd_channel_failed(void)
{
	return *(volatile uint64 *) (cfd_channel.link.base + CFD_FAILED_OFFSET) != 0;
}

/*
 * As cfd_fence, but only if one-way requests are outstanding, or an error is left to be told. Never opens a channel.
 */
extern void cfd_fence_outstanding(void);
/* The same, also for deferred ones. */
static inline void
cfd_fence_deferred(void)
{
	if (cfd_channel.connected &&
		(cfd_channel.outstanding || cfd_channel.deferred || cfd_channel_failed()))
		cfd_fence();
	cfd_channel.deferred = false;
}

/* Below this number of values, waking a sleeping keeper costs more than it gains. */
#define CFD_FEW_VALUES 256
/*
 * Sends a small message if that needs no waiting, and returns whether it was
 * sent. Never raises an error. Unless "soon" is set, a sleeping keeper is not
 * woken and finds the message together with the next one.
 */
extern bool cfd_try_send(uint16 kind, const void *fixed, uint32 fixed_length, bool soon);
/*
 * Reports a violation of the protocol by the keeper as an ERROR, and closes
 * the channel.
 */
pg_noreturn extern void cfd_violation(const char *what);
/*
 * Decodes a whole answer, or a part of one, into *out. Malformed input is a
 * protocol violation.
 */
#define CFD_DECODE(what, bytes, length, out) \
	do { \
		if (unlikely(!cfd_decode_##what(bytes, length, out))) \
			cfd_violation("malformed " #what); \
	} while (0)
/* Has plans read the constants of routines' texts again. */
extern void cfd_forget_constants(void);
extern void cfd_channel_close(void);
/* Closes the channel if it is no longer usable. */
extern void cfd_channel_close_broken(void);

/*
 * Setting confide.one_way. When off, every one-way message about rows or
 * values is followed by a fence, which measures what one-way messages gain.
 */
extern bool cfd_one_way;

/* To be called after a one-way message about a batch of rows. */
static inline void
cfd_after_batch(void)
{
	if (unlikely(!cfd_one_way))
		cfd_fence();
}

/*
 * Number of running plans whose operations are fenced one by one, because
 * another process may name a result at any time.
 */
extern int	cfd_fenced_plans;

/* To be called after a one-way operation. */
static inline void
cfd_after_operation(void)
{
	if (unlikely(cfd_fenced_plans > 0))
		cfd_fence();
	else
		cfd_after_batch();
}

#endif
