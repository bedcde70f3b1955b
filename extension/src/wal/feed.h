/*
 * feed.h
 *	  Reads the WAL and sends the redo records in it to the keeper.
 *
 * Invariant: either every redo record between the two positions has been sent,
 * in order, or an error was raised.
 */
#ifndef CFD_WAL_FEED_H
#define CFD_WAL_FEED_H

#include "postgres.h"
#include "access/xlogdefs.h"

/*
 * Position up to which WAL can be sent, and its timeline: the insert position,
 * with everything before it flushed; on a standby, the replay position.
 */
extern XLogRecPtr cfd_feed_position(TimeLineID *timeline);
/*
 * End of the last record at or before a position, which may be preceded by a
 * page header.
 */
extern XLogRecPtr cfd_feed_end_before(XLogRecPtr position);
/* Sends the redo records, and commits of their transactions. Returns the number of records. */
extern uint64 cfd_feed(XLogRecPtr from, XLogRecPtr until);
/* Whether a transaction may be running of which records were sent. */
extern bool cfd_feed_awaits(void);

#endif
