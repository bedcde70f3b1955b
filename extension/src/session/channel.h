/*
 * channel.h
 *	  This backend's channel to the keeper: one-way messages and answered calls.
 *
 * Knows how to send, wait and report errors; does not know what messages mean
 * (but for those about the channel itself: Fence, Forget, Release, Settings).
 * There is at most one channel per backend, opened at its first use and again
 * when the keeper was restarted.
 *
 * At a standby, a message waits until the keeper knows every FID that it can name.
 *
 * Invariants: requests are numbered, and an answer counts only for the request
 * that waits for it; while we wait, cancel and terminate work; an error leaves
 * the channel usable or closed, never half written.
 */
#ifndef CFD_SESSION_CHANNEL_H
#define CFD_SESSION_CHANNEL_H

#include "postgres.h"
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

/* Longest wait while a page is locked, in ms. */
extern int	cfd_locked_timeout;

/* The two arenas of a channel: see docs/decisions.md, lifetime. */
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
	CFD_REQUEST_LOST			/* no answer can come, or there was no memory for it */
} CfdRequestState;

/* An answered request that is awaited later than it is sent. */
typedef struct CfdRequest
{
	CfdRequestState state;
	uint32		sequence;
	char	   *answer;
	uint32		length;			/* of what has come of the answer */
	uint32		size;			/* of its buffer */
	MemoryContext context;		/* of its buffer */
	MemoryContextCallback callback;
	struct CfdRequest *next;	/* sent later */
} CfdRequest;

/* What of the SQL session's settings the keeper has been told. */
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
	bool		ready;			/* open, looked after in this message */
	bool		clock_told;		/* when this transaction began */
	bool		ticket_told;	/* confide.restore_ticket */
	bool		connected;
	bool		sending;		/* a message is written in part */
	bool		ended;			/* the keeper has hung up */
	bool		violated;		/* the keeper broke the contract */
	bool		outstanding;	/* one-way requests since the last answer */
	bool		forget;			/* Forget must be sent first */
	bool		held;			/* a keeper that sleeps is not woken before we wait */
	bool		had_client;		/* a handshake has succeeded */
	bool		lost_client;	/* ... in a session that is gone */
	uint32		generation;		/* counts connections of this backend */
	uint32		clients;		/* and handshakes */
	uint32		sequence;		/* of the last request */
	uint32		due;			/* answers not taken from the ring yet */
	uint32		body_left;		/* rest of an answer that nobody waits for */
	CfdRequest *taker;			/* whom it is for; NULL: nobody wants it */
	CfdRequest *pending;		/* sent, and not answered yet */
	uint64		next[2];		/* next FID of each arena */
	uint64		kept;			/* first FID of the statement arena not released */
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

/* Opens or looks after the channel; what cfd_begin does when there is need. */
extern void cfd_channel_prepare(void);
/* Opens the channel, or finds out that it has ended, at the first call in a message of the client; sends nothing. */
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

/* Must come before slots are numbered for a message. */
static inline void
cfd_begin(void)
{
	cfd_state_catch_up();
	if (unlikely(!cfd_channel.ready || !cfd_channel.clock_told || !cfd_settings_told()))
		cfd_channel_prepare();
}

/* Numbers a slot; the caller has called cfd_begin in the same message. */
static inline CfdFid
cfd_new_slot(CfdArena arena)
{
	return cfd_channel.next[arena]++;
}

/* Numbers slots, one after the other; gives the first. */
static inline CfdFid
cfd_new_slots(CfdArena arena, uint32 count)
{
	CfdFid		first = cfd_channel.next[arena];

	cfd_channel.next[arena] += count;
	return first;
}

/* Sends a one-way request: fixed part and tail (may be NULL). */
extern void cfd_send(uint16 kind, const void *fixed, uint32 fixed_length,
					 const void *tail, uint64 tail_length);
/*
 * The same about rows. Of many the keeper begins to take care at once, though it may sleep
 * and the message, of runs, be short.
 */
extern void cfd_send_rows(uint16 kind, const void *fixed, uint32 fixed_length,
						  const void *tail, uint64 tail_length, int rows);
/*
 * Sends an answered request and waits. The answer stays valid until the next
 * call; an error answer is raised.
 */
extern const char *cfd_call(uint16 kind, const void *fixed, uint32 fixed_length,
							const void *tail, uint64 tail_length, uint32 *length);
/*
 * Sends an answered request now, and waits for it later; in between, others may be
 * sent and answered. A request lives in the context that is current at its
 * initialisation, and is given up when that is reset. "expected": bytes of
 * the answer. cfd_await raises an error answer; the answer stays valid until the
 * request is used again.
 */
extern void cfd_request_init(CfdRequest *request);
extern void cfd_request(CfdRequest *request, uint16 kind, const void *fixed, uint32 fixed_length,
						const void *tail, uint64 tail_length, uint32 expected);
extern const char *cfd_await(CfdRequest *request, uint32 *length);
/*
 * Several requests follow: a keeper that sleeps is woken once, when the first of them is
 * awaited, not for each of them.
 */
static inline void
cfd_hold(void)
{
	cfd_channel.held = true;
}

/* Gives a request up, if it was sent. Does not wait. */
extern void cfd_drop(CfdRequest *request);
/* Waits until everything sent is done; raises the errors of one-way requests. */
extern void cfd_fence(void);
/* Fences if there is anything to wait for. Does not open a channel. */
extern void cfd_fence_outstanding(void);
/* For so few values it does not pay to wake a keeper that sleeps. */
#define CFD_FEW_VALUES 256
/*
 * Sends a small message if that takes no waiting; never raises an error. Unless it is to
 * be done soon, a keeper that sleeps is not woken, and finds it with the next one.
 */
extern bool cfd_try_send(uint16 kind, const void *fixed, uint32 fixed_length, bool soon);
/* Raises the error that the keeper broke the contract, and closes the channel. */
extern void cfd_violation(const char *what) pg_attribute_noreturn();
/* Reads an answer, or another part of a message, as a whole. */
#define CFD_DECODE(what, bytes, length, out) \
	do { \
		if (unlikely(!cfd_decode_##what(bytes, length, out))) \
			cfd_violation("malformed " #what); \
	} while (0)
extern void cfd_channel_close(void);
/* Closes the channel if it cannot be used any more. */
extern void cfd_channel_close_broken(void);

/*
 * What one-way messages are worth is measured without them: confide.one_way = off has the
 * keeper's answer awaited after each message about rows or values.
 */
extern bool cfd_one_way;

/* After a one-way message about many rows. */
static inline void
cfd_after_batch(void)
{
	if (unlikely(!cfd_one_way))
		cfd_fence();
}

/* Running plans of which each operation is fenced, since another process may name its result any time. */
extern int	cfd_fenced_plans;

/* After a one-way operation. */
static inline void
cfd_after_operation(void)
{
	if (unlikely(cfd_fenced_plans > 0))
		cfd_fence();
	else
		cfd_after_batch();
}

#endif
