/*
 * feed.c
 *	  Sending redo records from the WAL to the keeper; see feed.h.
 *
 * Invariant: as in feed.h. A record's contents are passed on without being
 * interpreted.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogreader.h"
#include "access/xlogrecovery.h"
#include "access/xlogutils.h"
#include "session/channel.h"
#include "session/pins.h"
#include "wal/fault.h"
#include "wal/feed.h"
#include "wal/rmgr.h"

/*
 * The insert position is where the next record will begin. That may be after
 * the header of a page that does not exist yet. What can be flushed and read
 * ends with the preceding record.
 */
XLogRecPtr
cfd_feed_end_before(XLogRecPtr position)
{
	uint32		in_segment = XLogSegmentOffset(position, wal_segment_size);

	if (in_segment == SizeOfXLogLongPHD)
		return position - SizeOfXLogLongPHD;
	if (in_segment % XLOG_BLCKSZ == SizeOfXLogShortPHD)
		return position - SizeOfXLogShortPHD;
	return position;
}

XLogRecPtr
cfd_feed_position(TimeLineID *timeline)
{
	XLogRecPtr	position;

	if (RecoveryInProgress())
		return GetXLogReplayRecPtr(timeline);
	*timeline = GetWALInsertionTimeLine();
	position = GetXLogInsertRecPtr();
	XLogFlush(cfd_feed_end_before(position));
	return position;
}

static void
send_record(XLogReaderState *reader)
{
	CfdWireRedo body = {.end = reader->EndRecPtr};

	/* Backends of a standby may have cached something by FID. */
	if (cfd_wal_is_sweep(XLogRecGetInfo(reader)))
		cfd_note_sweep();
	cfd_send(CFD_KIND_REDO, &body, sizeof(body), XLogRecGetData(reader), XLogRecGetDataLen(reader));
}

static void
cannot_read(XLogRecPtr at, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("could not read the WAL at %X/%X: %s",
					LSN_FORMAT_ARGS(at), what != NULL ? what : "no valid record"),
			 errhint("Copy the segments that are missing from the archive to pg_wal, or restore the keeper's newest data directory.")));
}

static void
about(void *arg)
{
	errcontext("reading the WAL since the keeper's checkpoint at %X/%X",
			   LSN_FORMAT_ARGS(*(XLogRecPtr *) arg));
}

static uint64
read_and_send(XLogReaderState *reader, XLogRecPtr from, XLogRecPtr until)
{
	uint64		sent = 0;

	if (XLogRecPtrIsInvalid(XLogFindNextRecord(reader, from)))
		cannot_read(from, NULL);
	do
	{
		char	   *what = NULL;

		CHECK_FOR_INTERRUPTS();
		if (XLogReadRecord(reader, &what) == NULL)
			cannot_read(reader->EndRecPtr, what);
		if (XLogRecGetRmid(reader) == CFD_RMGR_ID)
		{
			send_record(reader);
			cfd_fault("feed");
			sent++;
		}
	} while (reader->EndRecPtr < until);
	return sent;
}

uint64
cfd_feed(XLogRecPtr from, XLogRecPtr until)
{
	ErrorContextCallback context = {error_context_stack, about, &from};
	ReadLocalXLogPageNoWaitPrivate *private;
	XLogReaderState *reader;
	volatile uint64 sent = 0;

	if (cfd_feed_end_before(from) >= cfd_feed_end_before(until))
		return 0;
	private = palloc0(sizeof(*private));
	reader = XLogReaderAllocate(wal_segment_size, NULL,
								XL_ROUTINE(.page_read = read_local_xlog_page_no_wait,
										   .segment_open = wal_segment_open,
										   .segment_close = wal_segment_close),
								private);
	if (reader == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	reader->system_identifier = GetSystemIdentifier();
	error_context_stack = &context;
	PG_TRY();
	{
		sent = read_and_send(reader, from, cfd_feed_end_before(until));
	}
	PG_FINALLY();
	{
		XLogReaderFree(reader);
		pfree(private);
	}
	PG_END_TRY();
	error_context_stack = context.previous;
	return sent;
}
