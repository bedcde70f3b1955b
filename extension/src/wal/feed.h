/*
 * feed.h
 *	  Reads the WAL and sends the keeper's redo records in it to the keeper.
 *
 * Invariant: either every redo record between the two positions has been sent,
 * in order, or an error was raised.
 */
#ifndef CFD_WAL_FEED_H
#define CFD_WAL_FEED_H

#include "postgres.h"
#include "access/xlogdefs.h"

/*
 * How far the WAL can be sent: the insert position, with everything before it
 * flushed to disk; at a standby, what has been replayed. And its timeline.
 */
extern XLogRecPtr cfd_feed_position(TimeLineID *timeline);
/* The record that ends at or before a position; it may be followed by a page header. */
extern XLogRecPtr cfd_feed_end_before(XLogRecPtr position);
/* Sends the records; how many there were. */
extern uint64 cfd_feed(XLogRecPtr from, XLogRecPtr until);

#endif
