/*
 * keeper.c
 *	  What is known of the keeper's state and of the keys that it has; see
 *	  switch.h.
 *
 * A request has the keeper probe, at most once in its interval; a second one
 * right after it measures the round trip.
 *
 * Invariants: as in switch.h; a keeper that is gone is one without keys, not an
 * error.
 */
#include "postgres.h"

#include "fmgr.h"
#include "portability/instr_time.h"
#include "session/channel.h"
#include "switch/switch.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Asking takes at most one part in so many of a session's time. */
#define SHARE 20

/* Settings. */
static int	interval = 200;		/* milliseconds */
static double throttle = 1;

typedef struct Held
{
	CfdSoftKey	key;
	bool		held;
	TimestampTz at;
} Held;

static CfdKeeperState state;
static HTAB *keys = NULL;
static uint64 asked_incarnation = 0;	/* cfd_channel.clients when it was asked */

const CfdKeeperState *
cfd_keeper_state(void)
{
	return &state;
}

static bool
may_ask(void)
{
	return cfd_keeper_socket[0] != '\0' && cfd_channel.had_client && !cfd_channel.lost_client;
}

static bool
is_gone(int code)
{
	return ERRCODE_TO_CATEGORY(code) == ERRCODE_CONNECTION_EXCEPTION;
}

/* One request. Returns false if there is no keeper any more. */
static bool
request(const CfdSoftKey *key, CfdReadSoftStateAnswer *read)
{
	CfdWireSoftState body = {.t = key->type,.shape = key->shape,.key = key->key};
	MemoryContext context = CurrentMemoryContext;
	volatile bool answered = false;

	PG_TRY();
	{
		uint32		length;
		const char *answer = cfd_call(CFD_KIND_SOFT_STATE, &body, sizeof(body), NULL, 0, &length);

		CFD_DECODE(soft_state_answer, answer, length, read);
		answered = true;
	}
	PG_CATCH();
	{
		if (!is_gone(geterrcode()))
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
	}
	PG_END_TRY();
	return answered;
}

static double
cfd_keeper_since(instr_time start)
{
	instr_time	end;

	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	return INSTR_TIME_GET_DOUBLE(end) * 1e9;
}

static void
take_state(const CfdWireSoftStateAnswer *answer, double round_trip)
{
	state.known = true;
	state.open = answer->open;
	state.probe = answer->probe;
	state.usual = answer->usual;
	state.probes = answer->probes;
	state.faults = answer->faults;
	state.busy = state.usual > 0 ? Max(state.probe / state.usual, 1) : 1;
	state.throttle = throttle;
	/* Follows slowly: a single request may have met a process switch. */
	state.round_trip = state.asked == 0 ? round_trip : (3 * state.round_trip + round_trip) / 4;
	state.asked++;
}

static bool
cfd_keeper_ask(const CfdSoftKey *key)
{
	CfdReadSoftStateAnswer read;
	instr_time	start;

	if (!may_ask() || !request(key, &read))
		return false;
	INSTR_TIME_SET_CURRENT(start);
	if (!request(key, &read))
		return false;
	take_state(&read.head, cfd_keeper_since(start));
	return read.head.held != 0;
}

static HTAB *
keys_of_client(void)
{
	HASHCTL		control = {.keysize = sizeof(CfdSoftKey),.entrysize = sizeof(Held),.hcxt = TopMemoryContext};

	if (keys != NULL && asked_incarnation != cfd_channel.clients)
	{
		hash_destroy(keys);
		keys = NULL;
	}
	asked_incarnation = cfd_channel.clients;
	if (keys == NULL)
		keys = hash_create("confide keys of soft_", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	return keys;
}

/* Padding is part of the hash table's key. */
static void
clean_key(CfdSoftKey *out, const CfdSoftKey *key)
{
	memset(out, 0, sizeof(*out));
	out->key = key->key;
	out->type = key->type;
	out->shape = key->shape;
}

static bool
cfd_keeper_remember(const CfdSoftKey *key, bool held)
{
	Held	   *entry;
	CfdSoftKey	clean;

	clean_key(&clean, key);
	/* Asking may have found another client. */
	entry = hash_search(keys_of_client(), &clean, HASH_ENTER, NULL);
	entry->held = held;
	entry->at = GetCurrentTimestamp();
	return held;
}

/* Whether the keeper has all keys, whatever it answered before. */
static bool
cfd_keeper_asked_anew(const CfdWork *work)
{
	CfdReadSoftStateAnswer read;

	for (int i = 0; i < work->count; i++)
	{
		if (!request(&work->keys[i], &read) || !cfd_keeper_remember(&work->keys[i], read.head.held != 0))
			return false;
	}
	return true;
}

/*
 * A key that was taken back is not used any more: constants are opened without
 * an answer, and an error of that would be the statement's.
 */
bool
cfd_keeper_confirms(const CfdWork *work)
{
	return cfd_keeper_has(work) && cfd_keeper_asked_anew(work);
}

/* Looks a key up, asking about it if the last answer is old. Sets *asked if it did. */
static bool
cfd_keeper_look_up(const CfdSoftKey *key, bool *asked)
{
	CfdSoftKey	clean;
	TimestampTz now = GetCurrentTimestamp();
	static TimestampTz not_before = 0;
	bool		found;
	Held	   *entry;
	bool		held;

	clean_key(&clean, key);
	entry = hash_search(keys_of_client(), &clean, HASH_FIND, &found);
	if (found && (now < entry->at + (TimestampTz) interval * 1000 || now < not_before))
		return entry->held;
	held = cfd_keeper_ask(key);
	*asked = true;
	not_before = GetCurrentTimestamp() + (GetCurrentTimestamp() - now) * SHARE;
	return cfd_keeper_remember(key, held);
}

bool
cfd_keeper_look(const CfdWork *work)
{
	bool		asked = false;

	if (may_ask() && work->count > 0)
		(void) cfd_keeper_look_up(&work->keys[0], &asked);
	return asked;
}

bool
cfd_keeper_has(const CfdWork *work)
{
	bool		asked = false;

	if (!may_ask() || work->count == 0)
		return false;
	for (int i = 0; i < work->count; i++)
	{
		if (!cfd_keeper_look_up(&work->keys[i], &asked))
			return false;
	}
	return true;
}

/* What was remembered may be older than the key, and the caller refuses a statement for want of it. */
bool
cfd_keeper_has_by_now(const CfdWork *work)
{
	return cfd_keeper_has(work) || (may_ask() && work->count > 0 && cfd_keeper_asked_anew(work));
}

void
cfd_keeper_init(void)
{
	DefineCustomIntVariable("confide.soft_probe_interval",
							"Least time between two requests for the keeper's state.",
							NULL, &interval, 200, 1, 60000, PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomRealVariable("confide.soft_throttle",
							 "For tests: how many times slower than measured the keeper is taken to be, from its next probe on.",
							 NULL, &throttle, 1, 0.000001, 1000000, PGC_SUSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
}
