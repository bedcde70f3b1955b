/*
 * slot.c
 *	  The replication slot: see slot.h.
 *
 * Invariant: see slot.h; a slot of the same name that is not ours (a logical one)
 * is an error, not touched.
 */
#include "postgres.h"

#include "compat/slots.h"
#include "replication/slot.h"
#include "storage/spin.h"
#include "wal/slot.h"

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

void
cfd_slot_move(XLogRecPtr position)
{
	ReplicationSlot *slot = MyReplicationSlot;

	SpinLockAcquire(&slot->mutex);
	slot->data.restart_lsn = position;
	SpinLockRelease(&slot->mutex);
	ReplicationSlotMarkDirty();
	ReplicationSlotSave();
	ReplicationSlotsComputeRequiredLSN();
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
		cfd_slot_move(position);
	}
}
