/*
 * worker.h
 *	  Interface between the files of the recovery worker: recovery.c brings
 *	  the keeper up to date, belong.c rejects a keeper that does not belong
 *	  to the cluster, serve.c looks after a keeper that serves.
 *
 * Invariant: as in recovery.h.
 */
#ifndef CFD_WAL_WORKER_H
#define CFD_WAL_WORKER_H

#include "postgres.h"
#include "access/xlogdefs.h"
#include "datatype/timestamp.h"

/* State of the keeper as it reported it, updated by what it was sent since. */
typedef struct CfdRecovered
{
	uint32		standing;		/* CFD_STANDING_... */
	TimeLineID	timeline;		/* timeline of the later of the two positions */
	XLogRecPtr	checkpoint;
	XLogRecPtr	applied;		/* not maintained while it serves a primary */
	uint64		store;			/* 0: none */
	TimestampTz checkpoint_time;
} CfdRecovered;

extern CfdRecovered cfd_recovered;

#define keeper cfd_recovered

/* GUCs */
extern int	cfd_checkpoint_interval;
extern int	cfd_checkpoint_wal;

/* belong.c */
extern void cfd_recovery_refuse(const char *what, const char *detail, const char *hint);
/* Checks that the store is the one with this cluster's values. */
extern void cfd_recovery_check_store(void);
/* Checks that the store's history is part of this cluster's timeline history. */
extern void cfd_recovery_check_history(TimeLineID timeline);
extern void cfd_recovery_check_positions(XLogRecPtr end);
/* Handles a keeper without a store, which loses everything when it exits. */
extern void cfd_recovery_check_volatile(void);

/*
 * For a server that pg_upgrade starts: refuses if the cluster's values are in a store. The values since
 * its checkpoint are in the WAL, which the new cluster would not have.
 */
extern void cfd_recovery_check_upgrade(void);

/* serve.c */
/*
 * Looks after the keeper until it hangs up. A keeper without a store makes no
 * checkpoints.
 */
extern void cfd_recovery_attend(void);

/* recovery.c */
/* Whether the keeper has hung up. Also discards wake-up bytes from the socket. */
extern bool cfd_recovery_hung_up(void);
extern void cfd_recovery_reload(void);
/*
 * Logs a warning when the slot retains much WAL, and again each time that has
 * doubled.
 */
extern void cfd_recovery_warn_of_lag(void);
extern void cfd_recovery_tell_follow(XLogRecPtr position, TimeLineID timeline);
extern void cfd_recovery_checkpoint(void);
/* Sends everything up to a position and returns the number of records. */
extern uint64 cfd_recovery_feed(XLogRecPtr until);
/* After the WAL was sent: lets the keeper allocate FIDs. */
extern void cfd_recovery_begin_to_serve(void);

#endif
