/*
 * feed.c
 *	  Sending redo records from the WAL to the keeper; see feed.h.
 *
 * Which transactions committed is told, too, since the last entries of ledgers
 * do not say so.
 *
 * Invariant: as in feed.h. A redo record's contents are passed on without being
 * interpreted.
 */
#include "postgres.h"

#include "access/xact.h"
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

/*
 * Transactions that redo records came of, and of which the keeper is told if
 * they commit. So many may be running; an older one is forgotten.
 */
#define RUNNING_MAX 256

static TransactionId running[RUNNING_MAX];
static int	running_next = 0;

/* Position of a transaction among them, or -1. */
static int
running_at(TransactionId transaction)
{
	for (int i = 0; i < RUNNING_MAX; i++)
	{
		if (running[i] == transaction)
			return i;
	}
	return -1;
}

static void
record_came_of(TransactionId transaction)
{
	if (!TransactionIdIsValid(transaction) || running_at(transaction) >= 0)
		return;
	running[running_next] = transaction;
	running_next = (running_next + 1) % RUNNING_MAX;
}

bool
cfd_feed_awaits(void)
{
	for (int i = 0; i < RUNNING_MAX; i++)
	{
		if (TransactionIdIsValid(running[i]))
			return true;
	}
	return false;
}

/* Forgets a transaction and its subtransactions. Returns whether it was among them itself. */
static bool
feed_forget(TransactionId transaction, int count, const TransactionId *subtransactions)
{
	int			at;

	for (int i = 0; i < count; i++)
		(void) feed_forget(subtransactions[i], 0, NULL);
	at = running_at(transaction);
	if (at >= 0)
		running[at] = InvalidTransactionId;
	return at >= 0;
}

static void
send_commit(XLogReaderState *reader)
{
	CfdWireCommitted body = {.transaction = XLogRecGetXid(reader)};
	xl_xact_parsed_commit parsed;

	ParseCommitRecord(XLogRecGetInfo(reader), (xl_xact_commit *) XLogRecGetData(reader), &parsed);
	if (feed_forget(body.transaction, parsed.nsubxacts, parsed.subxacts))
		cfd_send(CFD_KIND_COMMITTED, &body, sizeof(body), NULL, 0);
}

static void
take_abort(XLogReaderState *reader)
{
	xl_xact_parsed_abort parsed;

	ParseAbortRecord(XLogRecGetInfo(reader), (xl_xact_abort *) XLogRecGetData(reader), &parsed);
	(void) feed_forget(XLogRecGetXid(reader), parsed.nsubxacts, parsed.subxacts);
}

static void
feed_send_end(XLogReaderState *reader)
{
	uint8		what = XLogRecGetInfo(reader) & XLOG_XACT_OPMASK;

	if (what == XLOG_XACT_COMMIT)
		send_commit(reader);
	else if (what == XLOG_XACT_ABORT)
		take_abort(reader);
}

static void
send_record(XLogReaderState *reader)
{
	CfdWireRedo body = {.end = reader->EndRecPtr,.transaction = XLogRecGetXid(reader)};

	/* Backends of a standby may have cached something by FID. */
	if (cfd_wal_is_sweep(XLogRecGetInfo(reader)))
		cfd_note_sweep();
	cfd_send(CFD_KIND_REDO, &body, sizeof(body), XLogRecGetData(reader), XLogRecGetDataLen(reader));
	record_came_of(body.transaction);
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
		else if (XLogRecGetRmid(reader) == RM_XACT_ID)
			feed_send_end(reader);
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
