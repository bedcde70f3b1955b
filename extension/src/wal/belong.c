/*
 * belong.c
 *	  Checks that keeper and cluster belong together. A keeper whose store
 *	  does not hold this cluster's values is not used, and the log tells
 *	  why. See worker.h.
 *
 * Invariant: as in recovery.h.
 */
#include "postgres.h"

#include <inttypes.h>

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

/* ---------- refusals ---------- */

void
cfd_recovery_refuse(const char *what, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the store of Confide's keeper %s", what),
			 errdetail("%s", detail),
			 errhint("%s", hint)));
}

static void
refuse_at(const char *what, XLogRecPtr position, const char *whose, XLogRecPtr ours, const char *hint)
{
	cfd_recovery_refuse(what,
						psprintf("The store's checkpoint is at %X/%X, %s at %X/%X.",
								 LSN_FORMAT_ARGS(position), whose, LSN_FORMAT_ARGS(ours)),
						hint);
}

#define GIVE_UP " To give up all protected values, remove file \"" CFD_MARKER_NAME \
	"\" from the cluster's data directory, and the slot \"" CFD_SLOT_NAME "\"."

/* Checks that the store is the one with this cluster's values. */
void
cfd_recovery_check_store(void)
{
	uint64		ours = cfd_marker_read();
	XLogRecPtr	slot = InvalidXLogRecPtr;

	if (keeper.checkpoint == 0 && RecoveryInProgress())
		cfd_recovery_refuse("is empty", "A standby's keeper begins with a copy of the primary's store.",
							"Make the copy with \"confide backup\".");
	if (keeper.checkpoint == 0 && cfd_slot_find(&slot) && !XLogRecPtrIsInvalid(slot))
		refuse_at("is empty, but has had a checkpoint", 0, "replication slot \"" CFD_SLOT_NAME "\" stands", slot,
				  "Restore the keeper's data directory." GIVE_UP);
	if (keeper.checkpoint == 0 && ours != 0)
		cfd_recovery_refuse("is empty, but this cluster has protected values",
							psprintf("They are in store %016" PRIx64 ".", ours),
							"Restore the keeper's data directory." GIVE_UP);
	if (ours != 0 && ours != keeper.store)
		cfd_recovery_refuse("is not that of this cluster's protected values",
							psprintf("The keeper has store %016" PRIx64 ", the cluster's values are in store %016" PRIx64 ".",
									 keeper.store, ours),
							"Let confide.keeper_socket name the cluster's own keeper, or restore that keeper's data directory." GIVE_UP);
}

/* Checks that the store's history is part of this cluster's timeline history. */
void
cfd_recovery_check_history(TimeLineID timeline)
{
	List	   *history = readTimeLineHistory(timeline);
	XLogRecPtr	position = cfd_feed_end_before(keeper.applied);
	ListCell   *cell;

	foreach(cell, history)
	{
		TimeLineHistoryEntry *entry = lfirst(cell);

		if (entry->tli == keeper.timeline &&
			(XLogRecPtrIsInvalid(entry->end) || position <= entry->end))
			return;
	}
	cfd_recovery_refuse("has gone another way than this cluster",
						psprintf("The store has timeline %u up to %X/%X, which is not in the history of the cluster's timeline %u.",
								 keeper.timeline, LSN_FORMAT_ARGS(keeper.applied), timeline),
						"Restore the keeper's data directory from the backup that the cluster was restored from.");
}

void
cfd_recovery_check_positions(XLogRecPtr end)
{
	XLogRecPtr	slot = InvalidXLogRecPtr;

	if (keeper.applied > end)
		refuse_at("is newer than this cluster", keeper.applied, "the cluster's WAL ends", end,
				  "Restore the cluster and the keeper's data directory from the same backup.");
	if (keeper.standing != CFD_STANDING_SERVES && cfd_slot_find(&slot) && keeper.checkpoint < slot)
		refuse_at("is an older copy", keeper.checkpoint, "replication slot \"" CFD_SLOT_NAME "\" stands", slot,
				  "Restore the keeper's newest data directory.");
}

/* Handles a keeper without a store, which loses everything when it exits. */
void
cfd_recovery_check_volatile(void)
{
	if (cfd_marker_read() != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("Confide's keeper has no store, but this cluster has protected values"),
				 errhint("Set data_dir in the keeper's configuration." GIVE_UP)));
	ereport(LOG, (errmsg("Confide's keeper keeps values in memory only: they are lost when it ends")));
}

void
cfd_recovery_check_upgrade(void)
{
	if (cfd_marker_exists())
		ereport(FATAL,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("pg_upgrade does not upgrade clusters with protected values"),
				 errdetail("Values that the keeper has received since its last checkpoint are in the WAL, which the new cluster would not have. Nothing was changed."),
				 errhint("Dump the databases, and restore the dumps in a new cluster with a keeper of its own, as docs/operations.md says. A cluster without protected values has no file \"" CFD_MARKER_NAME "\".")));
}
