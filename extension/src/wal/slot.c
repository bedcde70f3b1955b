/*
 * slot.c
 *	  The replication slot; see slot.h.
 *
 * Invariant: as in slot.h; a slot of the same name that is not ours (a logical
 * one) is an error and is left alone.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "compat/slots.h"
#include "replication/slot.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "wal/slot.h"

static bool
exists(const char *name)
{
	return SearchNamedReplicationSlot(name, true) != NULL;
}

bool
cfd_slot_find(XLogRecPtr *position)
{
	ReplicationSlot *slot = SearchNamedReplicationSlot(CFD_SLOT_NAME, true);
	bool		logical;

	if (slot == NULL)
		return false;
	SpinLockAcquire(&slot->mutex);
	logical = SlotIsLogical(slot);
	*position = slot->data.restart_lsn;
	SpinLockRelease(&slot->mutex);
	if (logical)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("replication slot \"%s\" is a logical one", CFD_SLOT_NAME),
				 errdetail("Confide needs a physical slot of this name."),
				 errhint("Drop or rename that slot.")));
	return true;
}

const char *
cfd_slot_that_holds(XLogRecPtr *position)
{
	ReplicationSlot *slot;

	if (cfd_slot_find(position))
		return CFD_SLOT_NAME;
	slot = SearchNamedReplicationSlot(CFD_SLOT_OF_RECOVERY, true);
	if (slot == NULL)
		return NULL;
	SpinLockAcquire(&slot->mutex);
	*position = slot->data.restart_lsn;
	SpinLockRelease(&slot->mutex);
	return CFD_SLOT_OF_RECOVERY;
}

static void
move_to(XLogRecPtr position)
{
	ReplicationSlot *slot = MyReplicationSlot;

	SpinLockAcquire(&slot->mutex);
	slot->data.restart_lsn = position;
	SpinLockRelease(&slot->mutex);
	ReplicationSlotMarkDirty();
	ReplicationSlotSave();
	ReplicationSlotsComputeRequiredLSN();
}

/* This process holds the keeper's slot, so that of recovery is no longer needed. */
static void
drop_slot_of_recovery(void)
{
	if (!exists(CFD_SLOT_OF_RECOVERY))
		return;
	ReplicationSlotRelease();
	ReplicationSlotDrop(CFD_SLOT_OF_RECOVERY, true);
	CFD_SLOT_ACQUIRE(CFD_SLOT_NAME);
}

void
cfd_slot_move(XLogRecPtr position)
{
	move_to(position);
	drop_slot_of_recovery();
}

void
cfd_slot_hold(XLogRecPtr position)
{
	XLogRecPtr	found;

	if (MyReplicationSlot != NULL)
		ReplicationSlotRelease();
	CheckSlotRequirements();
	if (cfd_slot_find(&found) && XLogRecPtrIsInvalid(found))
		ReplicationSlotDrop(CFD_SLOT_NAME, true);
	if (cfd_slot_find(&found))
		CFD_SLOT_ACQUIRE(CFD_SLOT_NAME);
	else
	{
		CFD_SLOT_CREATE(CFD_SLOT_NAME);
		move_to(position);
	}
	drop_slot_of_recovery();
}

static bool
is_slot_free(void)
{
	int			used = 0;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots; i++)
		used += ReplicationSlotCtl->replication_slots[i].in_use;
	LWLockRelease(ReplicationSlotControlLock);
	return used < max_replication_slots;
}

/*
 * Does what ReplicationSlotRelease does for a physical slot, except for the
 * flags in PGPROC, because the startup process is not a backend.
 */
static void
let_go(void)
{
	ReplicationSlot *slot = MyReplicationSlot;

	SpinLockAcquire(&slot->mutex);
	slot->active_pid = 0;
	SpinLockRelease(&slot->mutex);
	ConditionVariableBroadcast(&slot->active_cv);
	MyReplicationSlot = NULL;
}

/* Runs in the startup process, where an error would shut PostgreSQL down. */
void
cfd_slot_hold_for_recovery(XLogRecPtr position)
{
	if (exists(CFD_SLOT_NAME) || exists(CFD_SLOT_OF_RECOVERY))
		return;
	if (wal_level < WAL_LEVEL_REPLICA || !is_slot_free())
	{
		ereport(WARNING,
				(errmsg("no replication slot holds the WAL for Confide's keeper until it has started"),
				 errhint("Set wal_level to replica or more, and max_replication_slots to one more than now.")));
		return;
	}
	CFD_SLOT_CREATE(CFD_SLOT_OF_RECOVERY);
	move_to(position);
	let_go();
}
