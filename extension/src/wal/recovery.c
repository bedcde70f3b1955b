/*
 * recovery.c
 *	  The recovery worker: see recovery.h.
 *
 * One background worker, connected to no database. It opens a channel, announces
 * the keeper's run to the backends, sends the WAL if the keeper needs it, then
 * sleeps until the keeper hangs up, a checkpoint is due, or PostgreSQL ends. Any
 * error is told in the server's log (once, however often it comes again) and to
 * backends that wait, and is followed by another attempt.
 *
 * Invariants: what was begun on one connection is never continued on another;
 * the slot moves only after the keeper has answered a checkpoint; nothing the
 * keeper could still need is older than the slot.
 */
#include "postgres.h"

#include <sys/socket.h>

#include "access/xlog.h"
#include "channel/channel.h"
#include "channel/events.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "replication/slot.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "wal/feed.h"
#include "wal/recovery.h"
#include "wal/rmgr.h"
#include "wal/slot.h"
#include "wal/state.h"

#define BACKOFF_MIN_MS 20
#define BACKOFF_MAX_MS 1000
#define RECOVERING "The keeper is being brought up to date from the WAL."

/* GUCs */
static int	checkpoint_interval = 60;
static int	checkpoint_wal = 256;

static shmem_request_hook_type next_shmem_request = NULL;
static shmem_startup_hook_type next_shmem_startup = NULL;

/* The keeper's last checkpoint. */
static XLogRecPtr last_position;
static TimestampTz last_time;

/* ---------- one connection ---------- */

/* Sends an answered message about an LSN. */
static const char *
call(uint16 kind, const uint64 *words, int count, uint32 expected)
{
	uint32		length;
	const char *answer = cfd_call(kind, words, count * sizeof(uint64), NULL, 0, &length);

	if (length != expected)
		cfd_violation("answer about recovery has the wrong length");
	return answer;
}

static void
checkpoint(void)
{
	XLogRecPtr	position = cfd_feed_position();
	uint64		words[2] = {position, GetSystemIdentifier()};

	call(CFD_KIND_CHECKPOINT, words, 2, 0);
	if (MyReplicationSlot == NULL)
		cfd_slot_hold(position);
	cfd_slot_move(position);
	last_position = position;
	last_time = GetCurrentTimestamp();
	elog(DEBUG1, "confide: keeper made a checkpoint at %X/%X", LSN_FORMAT_ARGS(position));
}

static void
refuse(const char *what, XLogRecPtr keeper, const char *whose, XLogRecPtr ours, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the store of Confide's keeper %s", what),
			 errdetail("The store's checkpoint is at %X/%X, %s at %X/%X.",
					   LSN_FORMAT_ARGS(keeper), whose, LSN_FORMAT_ARGS(ours)),
			 errhint("%s", hint)));
}

/* Whether the keeper's store and this cluster can belong together. */
static void
check_positions(XLogRecPtr position, bool serves)
{
	XLogRecPtr	slot = InvalidXLogRecPtr;
	XLogRecPtr	end = GetXLogInsertRecPtr();

	if (position > end)
		refuse("is newer than this cluster", position, "the cluster's WAL ends", end,
			   "Restore the cluster and the keeper's data directory from the same time.");
	if (serves || !cfd_slot_find(&slot) || XLogRecPtrIsInvalid(slot))
		return;
	if (position == 0)
		refuse("is empty, but has had a checkpoint", position, "replication slot \"" CFD_SLOT_NAME "\" stands", slot,
			   "Restore the keeper's data directory. To give up all protected values, drop the slot.");
	if (position < slot)
		refuse("is an older copy", position, "replication slot \"" CFD_SLOT_NAME "\" stands", slot,
			   "Restore the keeper's newest data directory.");
}

/* The keeper has started: sends it what happened since its checkpoint. */
static void
recover(XLogRecPtr from)
{
	XLogRecPtr	until = cfd_feed_position();
	TimestampTz begin = GetCurrentTimestamp();
	uint64		word = until;
	uint64		sent;

	cfd_state_set_reason(RECOVERING);
	if (from == 0)
		checkpoint();			/* of nothing; from now on the slot counts */
	else
		cfd_slot_hold(from);
	sent = cfd_feed(from == 0 ? until : from, until);
	call(CFD_KIND_RECOVERY_DONE, &word, 1, 0);
	if (from == 0)
		ereport(LOG, (errmsg("Confide's keeper has begun a new store")));
	else
		ereport(LOG,
				(errmsg("Confide's keeper is up to date: " UINT64_FORMAT " redo records from %X/%X to %X/%X, %ld ms",
						sent, LSN_FORMAT_ARGS(from), LSN_FORMAT_ARGS(until),
						TimestampDifferenceMilliseconds(begin, GetCurrentTimestamp()))));
}

/* A keeper without a store forgets everything when it ends. */
static void
warn_of_volatile(void)
{
	XLogRecPtr	slot;

	ereport(LOG, (errmsg("Confide's keeper keeps values in memory only: they are lost when it ends")));
	if (cfd_slot_find(&slot))
		ereport(LOG,
				(errmsg("replication slot \"%s\" holds WAL for a store that this keeper does not have",
						CFD_SLOT_NAME),
				 errhint("Set data_dir in the keeper's configuration, or drop the slot.")));
}

/* Opens the channel, and gets the keeper to serve. */
static void
attach(void)
{
	uint64		word = GetSystemIdentifier();
	const char *answer;
	bool		serves;

	cfd_channel_close();
	cfd_begin();
	cfd_state_announce(cfd_channel.link.welcome.incarnation);
	answer = call(CFD_KIND_RECOVERY_STATE, &word, 1, 16);
	serves = cfd_get32(answer) == 1;
	last_position = cfd_get64(answer + 8);
	last_time = GetCurrentTimestamp();
	check_positions(last_position, serves);
	if (!serves)
		recover(last_position);
	else if (last_position != 0)
		cfd_slot_hold(last_position);
	else
		warn_of_volatile();
	cfd_state_set_reason(NULL);
}

/* Whether the keeper has hung up; takes wake-up bytes from the socket. */
static bool
hung_up(void)
{
	char		bytes[64];
	ssize_t		got;

	do
		got = recv(cfd_channel.link.sock, bytes, sizeof(bytes), MSG_DONTWAIT);
	while (got > 0 || (got < 0 && errno == EINTR));
	return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

/* Milliseconds until a checkpoint is due. */
static long
until_due(void)
{
	TimestampTz due = TimestampTzPlusMilliseconds(last_time, (int64) checkpoint_interval * 1000);
	TimestampTz now = GetCurrentTimestamp();

	if (GetLastImportantRecPtr() < last_position)
	{
		if (due <= now)
			last_time = now;	/* nothing happened: wait once more */
		return checkpoint_interval * 1000L;
	}
	if (GetXLogInsertRecPtr() - last_position >= (uint64) checkpoint_wal * 1024 * 1024)
		return 0;
	return TimestampDifferenceMilliseconds(now, due);
}

/* Until the keeper hangs up. A keeper without a store makes no checkpoints. */
static void
attend(bool durable)
{
	for (;;)
	{
		long		timeout = -1;
		int			events = WL_LATCH_SET | WL_SOCKET_READABLE | WL_EXIT_ON_PM_DEATH;

		if (durable)
		{
			cfd_state_wake_at(last_position + (uint64) checkpoint_wal * 1024 * 1024);
			timeout = until_due();
			if (timeout <= 0)
			{
				checkpoint();
				continue;
			}
			events |= WL_TIMEOUT;
		}
		events = WaitLatchOrSocket(MyLatch, events, cfd_channel.link.sock, timeout, cfd_wait_event());
		if (events & WL_LATCH_SET)
			ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if ((events & WL_SOCKET_READABLE) && hung_up())
			return;
	}
}

/* ---------- the worker ---------- */

/* Tells an error, unless it is the one told last. */
static void
tell(ErrorData *error, char **told)
{
	char	   *text = psprintf("%s%s%s", error->message,
								error->detail != NULL ? " " : "",
								error->detail != NULL ? error->detail : "");

	cfd_state_set_reason(text);
	if (*told == NULL || strcmp(*told, text) != 0)
	{
		ereport(LOG,
				(errmsg("Confide's recovery worker: %s", error->message),
				 error->detail != NULL ? errdetail("%s", error->detail) : 0,
				 error->hint != NULL ? errhint("%s", error->hint) : 0,
				 error->context != NULL ? errcontext("%s", error->context) : 0));
		if (*told != NULL)
			pfree(*told);
		*told = MemoryContextStrdup(TopMemoryContext, text);
	}
	pfree(text);
}

static void
clean_up(void)
{
	LWLockReleaseAll();
	ConditionVariableCancelSleep();
	pgstat_report_wait_end();
	if (MyReplicationSlot != NULL)
		ReplicationSlotRelease();
	cfd_channel_close();
}

/* One connection, from its beginning to its end; false after an error. */
static bool
attempt(MemoryContext context, char **told)
{
	volatile bool ended = false;

	PG_TRY();
	{
		attach();
		attend(last_position != 0);
		ended = true;
		HOLD_INTERRUPTS();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		HOLD_INTERRUPTS();
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		tell(error, (char **) told);
	}
	PG_END_TRY();
	clean_up();
	RESUME_INTERRUPTS();
	MemoryContextReset(context);
	return ended;
}

static void
nap(long ms)
{
	int			events = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
								   ms, cfd_wait_event());

	if (events & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

void
cfd_recovery_main(Datum arg)
{
	MemoryContext context;
	char	   *told = NULL;
	long		backoff = BACKOFF_MIN_MS;

	(void) arg;
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	context = AllocSetContextCreate(TopMemoryContext, "confide recovery", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	for (;;)
	{
		if (attempt(context, &told))
		{
			backoff = BACKOFF_MIN_MS;
			if (told != NULL)
				pfree(told);
			told = NULL;
		}
		nap(backoff);
		backoff = Min(backoff * 2, BACKOFF_MAX_MS);
	}
}

/* ---------- wiring ---------- */

static void
request_shmem(void)
{
	if (next_shmem_request != NULL)
		next_shmem_request();
	cfd_state_request_shmem();
}

static void
startup_shmem(void)
{
	if (next_shmem_startup != NULL)
		next_shmem_startup();
	cfd_state_init_shmem();
}

static void
define_settings(void)
{
	DefineCustomIntVariable("confide.checkpoint_interval",
							"Sets the maximum time between checkpoints of the keeper.",
							NULL, &checkpoint_interval, 60, 1, 86400,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("confide.checkpoint_wal",
							"Sets the amount of WAL that triggers a checkpoint of the keeper.",
							NULL, &checkpoint_wal, 256, 1, MAX_KILOBYTES / 1024,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
}

void
cfd_wal_init(void)
{
	BackgroundWorker worker;

	cfd_rmgr_register();
	define_settings();
	next_shmem_request = shmem_request_hook;
	shmem_request_hook = request_shmem;
	next_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
	if (IsBinaryUpgrade)
		return;
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 1;
	strlcpy(worker.bgw_library_name, "confide", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "cfd_recovery_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "confide recovery", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "confide recovery", sizeof(worker.bgw_type));
	RegisterBackgroundWorker(&worker);
}
