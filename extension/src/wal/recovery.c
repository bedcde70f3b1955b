/*
 * recovery.c
 *	  The recovery worker; see recovery.h.
 *
 * It is a background worker that is connected to no database. It opens a
 * channel, announces the keeper's run to the backends, checks that keeper and
 * cluster belong together, sends the WAL if the keeper needs it, and admits
 * the run. After a crash it does so while PostgreSQL still replays the WAL: it
 * first sends what has been replayed, and the rest when replay is complete. It
 * then sleeps until the keeper hangs up, a checkpoint is due, or PostgreSQL
 * shuts down. On a standby it also sends what is replayed, until promotion.
 * Any error is logged (once, however often it recurs), reported to waiting
 * backends, and followed by another attempt.
 *
 * Invariants: what was begun on one connection is never continued on another;
 * the slot advances only after the keeper has confirmed a checkpoint; the slot
 * retains everything that the keeper may still need.
 */
#include "postgres.h"

#include <inttypes.h>

#include <sys/socket.h>

#include "access/timeline.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "session/channel.h"
#include "session/connect.h"
#include "session/events.h"
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
#include "wal/fault.h"
#include "wal/feed.h"
#include "wal/marker.h"
#include "wal/policy.h"
#include "wal/recovery.h"
#include "wal/rmgr.h"
#include "wal/slot.h"
#include "wal/worker.h"
#include "session/gate.h"

#define BACKOFF_MIN_MS 20
#define BACKOFF_MAX_MS 1000
#define AWAIT_REPLAY_MS 10
#define RECOVERING "The keeper is being brought up to date from the WAL."

/* GUCs */
int			cfd_checkpoint_interval = 60;
int			cfd_checkpoint_wal = 256;
static int	wal_lag_warning = 1024;

CfdRecovered cfd_recovered;

/* ---------- helpers ---------- */

/* Whether the keeper has hung up. Also discards wake-up bytes from the socket. */
bool
cfd_recovery_hung_up(void)
{
	char		bytes[64];
	ssize_t		got;

	do
		got = recv(cfd_channel.link.sock, bytes, sizeof(bytes), MSG_DONTWAIT);
	while (got > 0 || (got < 0 && errno == EINTR));
	return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

void
cfd_recovery_reload(void)
{
	if (!ConfigReloadPending)
		return;
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
}

static void
nap(long ms)
{
	int			events = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
								   ms, cfd_wait_event());

	if (events & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	cfd_recovery_reload();
}

/*
 * Logs a warning when the slot retains much WAL, and again each time that has
 * doubled.
 */
void
cfd_recovery_warn_of_lag(void)
{
	static uint64 told = 0;
	TimeLineID	timeline;
	XLogRecPtr	end = RecoveryInProgress() ? GetXLogReplayRecPtr(&timeline) : GetXLogInsertRecPtr();
	XLogRecPtr	slot = InvalidXLogRecPtr;
	const char *name = cfd_slot_that_holds(&slot);
	uint64		lag;

	if (name == NULL || XLogRecPtrIsInvalid(slot) || end < slot)
		return;
	lag = (end - slot) / (1024 * 1024);
	if (wal_lag_warning == 0 || lag < wal_lag_warning)
		told = 0;
	else if (lag >= told * 2)
	{
		told = lag;
		ereport(WARNING,
				(errmsg("replication slot \"%s\" holds " UINT64_FORMAT " MB of WAL for Confide's keeper",
						name, lag),
				 errdetail("It holds the WAL from %X/%X.", LSN_FORMAT_ARGS(slot)),
				 errhint("Start the keeper, or see in its log why checkpoints fail. max_slot_wal_keep_size bounds what is kept; WAL that is gone must come back from the archive when the keeper is started again.")));
	}
}

/* ---------- messages ---------- */

/* Sends a message whose answer is empty. */
static void
say(uint16 kind, const void *body, uint32 length)
{
	uint32		answered;

	cfd_call(kind, body, length, NULL, 0, &answered);
	if (answered != 0)
		cfd_violation("answer about recovery is not empty");
}

static void
cfd_recovery_ask(void)
{
	CfdWireRecoveryState body = {.system = GetSystemIdentifier()};
	CfdReadRecoveryStateAnswer read;
	uint32		length;
	const char *answer = cfd_call(CFD_KIND_RECOVERY_STATE, &body, sizeof(body), NULL, 0, &length);

	CFD_DECODE(recovery_state_answer, answer, length, &read);
	keeper.standing = read.head.standing;
	keeper.timeline = read.head.timeline;
	keeper.checkpoint = read.head.checkpoint;
	keeper.applied = read.head.applied;
	keeper.store = read.head.store;
	keeper.checkpoint_time = GetCurrentTimestamp();
	cfd_state_set_store(keeper.store, keeper.checkpoint);
}

void
cfd_recovery_tell_follow(XLogRecPtr position, TimeLineID timeline)
{
	CfdWireFollow body = {.position = position,.timeline = timeline};

	say(CFD_KIND_FOLLOW, &body, sizeof(body));
}

void
cfd_recovery_checkpoint(void)
{
	TimeLineID	timeline = keeper.timeline;
	XLogRecPtr	position;
	CfdWireCheckpoint body = {.system = GetSystemIdentifier()};
	uint64		ticket;

	cfd_state_asked(&ticket);
	if (keeper.standing == CFD_STANDING_SERVES)
		cfd_log_policies();
	say(CFD_KIND_CHECKPOINT_BEGIN, NULL, 0);
	position = keeper.standing == CFD_STANDING_FOLLOWS ? keeper.applied : cfd_feed_position(&timeline);
	body.position = position;
	body.timeline = timeline;
	cfd_fault("before-checkpoint");
	say(CFD_KIND_CHECKPOINT, &body, sizeof(body));
	cfd_fault("after-checkpoint");
	if (MyReplicationSlot == NULL)
		cfd_slot_hold(position);
	cfd_slot_move(position);
	cfd_fault("after-slot");
	if (cfd_marker_read() == 0)
		cfd_marker_write(keeper.store);
	keeper.checkpoint = position;
	keeper.checkpoint_time = GetCurrentTimestamp();
	cfd_state_checkpointed(ticket, position);
	elog(DEBUG1, "confide: keeper made a checkpoint at %X/%X", LSN_FORMAT_ARGS(position));
}

/* ---------- PostgreSQL's recovery ---------- */

/*
 * Waits until slots and WAL are accessible: PostgreSQL is up, is a hot
 * standby, or replays the WAL after a crash.
 */
static void
await_postgres(void)
{
	for (;;)
	{
		RecoveryState state = GetRecoveryState();
		TimeLineID	timeline;

		if (state == RECOVERY_STATE_DONE ||
			(state == RECOVERY_STATE_ARCHIVE && HotStandbyActive()) ||
			(state == RECOVERY_STATE_CRASH && !XLogRecPtrIsInvalid(GetXLogReplayRecPtr(&timeline))))
			return;
		nap(AWAIT_REPLAY_MS);
	}
}

/* Gives PostgreSQL time to replay more. */
static void
nap_attached(void)
{
	nap(AWAIT_REPLAY_MS);
	if (cfd_recovery_hung_up())
		ereport(ERROR, (errcode(ERRCODE_CONNECTION_FAILURE), errmsg("the keeper is gone")));
}

/*
 * The keeper was ahead when PostgreSQL was restarted: wait until PostgreSQL
 * has replayed that far.
 */
static void
await_replay(void)
{
	TimeLineID	timeline;

	cfd_state_set_reason("PostgreSQL has not replayed the WAL as far as its keeper has it.");
	while (RecoveryInProgress() && GetXLogReplayRecPtr(&timeline) < keeper.applied)
		nap_attached();
}

/* Whether crash recovery has more to replay. Waits for a moment if so. */
static bool
replays_after_crash(void)
{
	if (GetRecoveryState() != RECOVERY_STATE_CRASH)
		return false;
	nap_attached();
	return true;
}

/* ---------- bringing the keeper up to date ---------- */

static void
admit(XLogRecPtr applied, bool follows)
{
	cfd_state_set_applied(applied, follows);
	cfd_state_set_reason(NULL);
	cfd_state_admit();
}

/* Sends everything up to a position and returns the number of records. */
uint64
cfd_recovery_feed(XLogRecPtr until)
{
	uint64		sent = cfd_feed(keeper.applied, until);

	keeper.applied = until;
	return sent;
}

/* After the WAL was sent: lets the keeper allocate FIDs. */
void
cfd_recovery_begin_to_serve(void)
{
	CfdWireRecoveryDone body = {.position = keeper.applied};

	cfd_fault("before-done");
	say(CFD_KIND_RECOVERY_DONE, &body, sizeof(body));
	cfd_fault("after-done");
	keeper.standing = CFD_STANDING_SERVES;
	admit(PG_UINT64_MAX, false);
	cfd_log_policies();
}

static void
begin_to_follow(TimeLineID timeline)
{
	cfd_recovery_tell_follow(keeper.applied, timeline);
	keeper.timeline = timeline;
	keeper.standing = CFD_STANDING_FOLLOWS;
	admit(keeper.applied, true);
}

static void
new_store(void)
{
	CfdWireRecoveryDone body;

	cfd_recovery_checkpoint();				/* of an empty store; the slot is needed from now on */
	body.position = keeper.applied = keeper.checkpoint;
	say(CFD_KIND_RECOVERY_DONE, &body, sizeof(body));
	keeper.standing = CFD_STANDING_SERVES;
	admit(PG_UINT64_MAX, false);
	ereport(LOG, (errmsg("Confide's keeper has begun a new store, number %016" PRIx64, keeper.store)));
}

/* The keeper was restarted: sends it what happened since its checkpoint. */
static void
recover(void)
{
	TimestampTz begin = GetCurrentTimestamp();
	XLogRecPtr	from = keeper.applied;
	TimeLineID	timeline;
	XLogRecPtr	until;
	bool		more;
	bool		standby;
	uint64		sent = 0;

	await_replay();
	cfd_state_set_reason(RECOVERING);
	until = cfd_feed_position(&timeline);
	cfd_recovery_check_history(timeline);
	cfd_recovery_check_positions(until);
	cfd_slot_hold(keeper.checkpoint);
	do
	{
		more = replays_after_crash();
		standby = RecoveryInProgress();
		until = cfd_feed_position(&timeline);
		sent += cfd_recovery_feed(until);
	} while (more);
	if (standby)
		begin_to_follow(timeline);
	else
		cfd_recovery_begin_to_serve();
	ereport(LOG,
			(errmsg("Confide's keeper is up to date: " UINT64_FORMAT " redo records from %X/%X to %X/%X, %ld ms",
					sent, LSN_FORMAT_ARGS(from), LSN_FORMAT_ARGS(until),
					TimestampDifferenceMilliseconds(begin, GetCurrentTimestamp())),
			 standby ? errdetail("It follows the standby's recovery.") : 0));
}

/* The keeper has been serving all along. */
static void
resume(void)
{
	TimeLineID	timeline;
	XLogRecPtr	end;

	if (RecoveryInProgress())
		cfd_recovery_refuse("serves a cluster that writes, but this one is a standby",
							"A standby has a keeper of its own.",
							"If it is this cluster's keeper, and the cluster was made a standby, restart the keeper.");
	end = cfd_feed_position(&timeline);
	cfd_recovery_check_history(timeline);
	cfd_recovery_check_positions(end);
	cfd_slot_hold(keeper.checkpoint);
	admit(PG_UINT64_MAX, false);
}

/* Opens the channel and gets the keeper into service. */
static void
attach(void)
{
	cfd_channel_close();
	await_postgres();
	cfd_begin();
	cfd_state_announce(cfd_channel.link.welcome.incarnation);
	cfd_recovery_ask();
	/* Only a keeper that needs the WAL can use a part of it. */
	if (keeper.standing == CFD_STANDING_SERVES || keeper.checkpoint == 0)
		while (replays_after_crash())
			;
	if (keeper.store == 0)
	{
		cfd_recovery_check_volatile();
		admit(PG_UINT64_MAX, false);
		return;
	}
	cfd_recovery_check_store();
	if (keeper.checkpoint == 0)
		new_store();
	else if (keeper.standing == CFD_STANDING_SERVES)
		resume();
	else
		recover();
	if (cfd_marker_read() == 0)
		cfd_marker_write(keeper.store);
}

/* ---------- the worker ---------- */

/* Reports an error, unless it equals the last one. */
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

/* Handles one connection from beginning to end. Returns false after an error. */
static bool
cfd_recovery_attempt(MemoryContext context, char **told)
{
	volatile bool ended = false;

	PG_TRY();
	{
		attach();
		cfd_recovery_attend();
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
		cfd_state_failed();
	}
	PG_END_TRY();
	clean_up();
	RESUME_INTERRUPTS();
	MemoryContextReset(context);
	return ended;
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
		if (!cfd_keeper_wanted())
		{
			nap(BACKOFF_MAX_MS);
			continue;
		}
		if (cfd_recovery_attempt(context, &told))
		{
			backoff = BACKOFF_MIN_MS;
			if (told != NULL)
				pfree(told);
			told = NULL;
		}
		cfd_recovery_warn_of_lag();
		nap(backoff);
		backoff = Min(backoff * 2, BACKOFF_MAX_MS);
	}
}

/* ---------- initialisation ---------- */

static void
cfd_recovery_define_settings(void)
{
	DefineCustomIntVariable("confide.checkpoint_interval",
							"Sets the maximum time between checkpoints of the keeper.",
							NULL, &cfd_checkpoint_interval, 60, 1, 86400,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("confide.checkpoint_wal",
							"Sets the amount of WAL that triggers a checkpoint of the keeper.",
							NULL, &cfd_checkpoint_wal, 256, 1, MAX_KILOBYTES / 1024,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomStringVariable("confide.fault_point",
							   "For tests: where a process is to die.",
							   NULL, &cfd_fault_point, "", PGC_SUSET,
							   GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE | GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
	DefineCustomIntVariable("confide.wal_lag_warning",
							"Sets the amount of WAL held for the keeper that is warned of.",
							"Zero: never.", &wal_lag_warning, 1024, 0, MAX_KILOBYTES / 1024,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("confide.standby_timeout",
							"Longest time to wait for the keeper of a standby to come as far as its recovery.",
							NULL, &cfd_standby_timeout, 30000, 1, 3600000,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
}

void
cfd_wal_init(void)
{
	BackgroundWorker worker;

	cfd_rmgr_register();
	cfd_recovery_define_settings();
	if (IsBinaryUpgrade)
	{
		cfd_recovery_check_upgrade();
		return;
	}
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	/* The worker itself waits until PostgreSQL is ready. */
	worker.bgw_start_time = BgWorkerStart_PostmasterStart;
	worker.bgw_restart_time = 1;
	strlcpy(worker.bgw_library_name, "confide", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "cfd_recovery_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "confide recovery", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "confide recovery", sizeof(worker.bgw_type));
	RegisterBackgroundWorker(&worker);
}
