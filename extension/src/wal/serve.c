/*
 * serve.c
 *	  What the recovery worker does while the keeper serves: it triggers
 *	  checkpoints and, on a standby, sends what has been replayed. See
 *	  worker.h.
 *
 * Invariant: as in recovery.h.
 */
#include "postgres.h"

#include <sys/socket.h>
#include "access/timeline.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "session/channel.h"
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
#include "wal/recovery.h"
#include "wal/rmgr.h"
#include "wal/slot.h"
#include "wal/worker.h"
#include "session/gate.h"

#define FOLLOW_SOON_MS 1
#define FOLLOW_IDLE_MS 500

/* ---------- while the keeper serves ---------- */

/*
 * Standby: sends what has been replayed. WAL that contains no redo record, and
 * not the end of a transaction that had one, need not be read, because redo
 * records announce themselves (rmgr.c). Therefore the position must be taken
 * before the announcement is read. Returns whether there is more to send.
 */
static bool
follow(void)
{
	TimeLineID	timeline;
	XLogRecPtr	until;

	if (!RecoveryInProgress())
	{
		cfd_recovery_feed(cfd_feed_position(&timeline));
		keeper.timeline = timeline;
		cfd_recovery_begin_to_serve();
		ereport(LOG,
				(errmsg("Confide's keeper serves a cluster that writes, from %X/%X on timeline %u",
						LSN_FORMAT_ARGS(keeper.applied), timeline)));
		return false;
	}
	until = GetXLogReplayRecPtr(&timeline);
	pg_memory_barrier();
	if (cfd_state_replayed() <= keeper.applied && !cfd_feed_awaits())
	{
		keeper.applied = Max(keeper.applied, until);
		keeper.timeline = timeline;
		return false;
	}
	if (until > keeper.applied)
	{
		cfd_recovery_feed(until);
		cfd_recovery_tell_follow(until, timeline);
		keeper.timeline = timeline;
		cfd_state_set_applied(until, true);
	}
	return cfd_state_replayed() > keeper.applied;
}

/* Milliseconds until the next checkpoint is due. */
static long
until_due(void)
{
	TimestampTz due = TimestampTzPlusMilliseconds(keeper.checkpoint_time, (int64) cfd_checkpoint_interval * 1000);
	TimestampTz now = GetCurrentTimestamp();
	bool		follows = keeper.standing == CFD_STANDING_FOLLOWS;
	XLogRecPtr	changed = follows ? keeper.applied : GetLastImportantRecPtr();
	XLogRecPtr	end = follows ? keeper.applied : GetXLogInsertRecPtr();
	uint64		ticket;

	if (cfd_state_asked(&ticket))
		return 0;
	if (changed <= keeper.checkpoint)
	{
		if (due <= now)
			keeper.checkpoint_time = now;	/* no changes: wait for another interval */
		return cfd_checkpoint_interval * 1000L;
	}
	if (end - keeper.checkpoint >= (uint64) cfd_checkpoint_wal * 1024 * 1024)
		return 0;
	return TimestampDifferenceMilliseconds(now, due);
}

/* Does what is due. Returns for how many milliseconds there is nothing to do. */
static long
do_what_is_due(void)
{
	bool		more = keeper.standing == CFD_STANDING_FOLLOWS && follow();
	long		timeout;

	cfd_state_wake_at(keeper.checkpoint + (uint64) cfd_checkpoint_wal * 1024 * 1024);
	timeout = until_due();
	if (timeout <= 0)
		cfd_recovery_checkpoint();
	cfd_recovery_warn_of_lag();
	if (keeper.standing == CFD_STANDING_FOLLOWS)
		timeout = Min(timeout, more ? FOLLOW_SOON_MS : FOLLOW_IDLE_MS);
	return Max(timeout, 0);
}

/*
 * Looks after the keeper until it hangs up. A keeper without a store makes no
 * checkpoints.
 */
void
cfd_recovery_attend(void)
{
	for (;;)
	{
		long		timeout = -1;
		int			events = WL_LATCH_SET | WL_SOCKET_READABLE | WL_EXIT_ON_PM_DEATH;

		if (keeper.store != 0)
		{
			timeout = do_what_is_due();
			events |= WL_TIMEOUT;
		}
		events = WaitLatchOrSocket(MyLatch, events, cfd_channel.link.sock, timeout, cfd_wait_event());
		if (events & WL_LATCH_SET)
			ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		cfd_recovery_reload();
		if ((events & WL_SOCKET_READABLE) && cfd_recovery_hung_up())
			return;
	}
}
