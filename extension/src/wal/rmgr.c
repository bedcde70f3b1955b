/*
 * rmgr.c
 *	  The custom resource manager; see rmgr.h.
 *
 * A restarted keeper receives the WAL up to a position that the recovery
 * worker determines after it has announced the new run (gate.h). It then
 * reuses FIDs for which that WAL has no record, even if the previous run had
 * allocated them. Hence a record of the previous run must not be written
 * later. A backend that holds a record of a run other than the announced one
 * raises an error instead, before any row with the FID exists. The check and
 * the write are atomic with respect to the announcement.
 *
 * Invariant: as in rmgr.h; of a record, only version and kind are ever shown.
 */
#include "postgres.h"

#include "access/rmgr.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xloginsert.h"
#include "access/xlogrecovery.h"
#include "session/channel.h"
#include "session/connect.h"
#include "session/gate.h"
#include "wal/fault.h"
#include "wal/marker.h"
#include "wal/rmgr.h"
#include "wal/slot.h"

/* A record starts with version, kind and counter (crate redo). */
#define KIND_OFFSET 1
#define KIND_PROMOTION 1
#define KIND_PARTITION 2
#define KIND_SWEEP 3
#define KIND_DROP 4
#define KIND_RUNS 5
#define KIND_POLICY 6
#define KIND_LEASE 7
#define KIND_ADOPTED 8
/* The resource manager may use the upper four bits of the info byte. */
#define INFO_OF_KIND(kind) ((uint8) (((kind) & 0x0f) << 4))
#define KIND_OF_INFO(info) (((info) & ~XLR_INFO_MASK) >> 4)

/*
 * Called when PostgreSQL's redo starts. Replayed WAL may be removed unless a
 * slot shows that the keeper still needs it.
 */
static void
begin_redo(void)
{
	TimeLineID	timeline;

	if (cfd_keeper_wanted() && cfd_marker_exists())
		cfd_slot_hold_for_recovery(GetXLogReplayRecPtr(&timeline));
}

/*
 * The recovery worker sends the record to the keeper. Backends of a standby
 * wait for that.
 */
static void
redo(XLogReaderState *record)
{
	cfd_state_note_replayed(record->EndRecPtr);
}

static const char *
identify(uint8 info)
{
	switch (KIND_OF_INFO(info))
	{
		case KIND_PROMOTION:
			return "PROMOTION";
		case KIND_RUNS:
			return "PROMOTION_RUNS";
		case KIND_LEASE:
			return "LEASE";
		case KIND_ADOPTED:
			return "ADOPTED";
		case KIND_PARTITION:
			return "PARTITION";
		case KIND_SWEEP:
			return "SWEEP";
		case KIND_DROP:
			return "DROP";
		case KIND_POLICY:
			return "POLICY";
		default:
			return NULL;
	}
}

bool
cfd_wal_is_sweep(uint8 info)
{
	return KIND_OF_INFO(info) == KIND_SWEEP;
}

static void
desc(StringInfo out, XLogReaderState *record)
{
	appendStringInfo(out, "sealed, %u bytes", XLogRecGetDataLen(record));
}

static const RmgrData manager = {
	.rm_name = "confide",
	.rm_startup = begin_redo,
	.rm_redo = redo,
	.rm_desc = desc,
	.rm_identify = identify,
};

void
cfd_rmgr_register(void)
{
	RegisterCustomRmgr(CFD_RMGR_ID, (RmgrData *) &manager);
}

static void
keeper_restarted(void)
{
	cfd_channel_close();
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("Confide's keeper was restarted while a row was written"),
			 errhint("The statement had no effect; try again.")));
}

void
cfd_wal_log(const void *record, Size length, bool permanent)
{
	XLogRecPtr	commit_needs = XactLastRecEnd;
	XLogRecPtr	end;

	Assert(length >= CFD_WAL_RECORD_MIN);
	cfd_fault("holds-record");
	if (!cfd_state_enter(cfd_channel.link.welcome.incarnation))
		keeper_restarted();
	cfd_fault("before-log");
	XLogBeginInsert();
	XLogRegisterData((char *) record, length);
	end = XLogInsert(CFD_RMGR_ID, INFO_OF_KIND(((const uint8 *) record)[KIND_OFFSET]));
	cfd_state_leave();
	if (!permanent)
		XactLastRecEnd = commit_needs;
	cfd_state_note_wal(end);
	cfd_fault("after-log");
}
