/*
 * worker.h
 *	  The recovery worker's own: what its files share. recovery.c brings the keeper up to
 *	  date, belong.c refuses one that does not belong to the cluster, serve.c attends to one that serves.
 *
 * Invariant: as of recovery.h.
 */
#ifndef CFD_WAL_WORKER_H
#define CFD_WAL_WORKER_H

#include "postgres.h"
#include "access/xlogdefs.h"
#include "datatype/timestamp.h"

/* The keeper, as it was when it was asked, and what it was told since. */
typedef struct CfdRecovered
{
	uint32		standing;		/* CFD_STANDING_... */
	TimeLineID	timeline;		/* of the later of the two positions */
	XLogRecPtr	checkpoint;
	XLogRecPtr	applied;		/* not kept while it serves a cluster that writes */
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
/* Whether this is the store that has the cluster's values. */
extern void cfd_recovery_check_store(void);
/* Whether the store's history is a part of ours. */
extern void cfd_recovery_check_history(TimeLineID timeline);
extern void cfd_recovery_check_positions(XLogRecPtr end);
/* A keeper without a store forgets everything when it ends. */
extern void cfd_recovery_check_volatile(void);

/* serve.c */
/* Until the keeper hangs up. A keeper without a store makes no checkpoints. */
extern void cfd_recovery_attend(void);

/* recovery.c */
/* Whether the keeper has hung up; takes wake-up bytes from the socket. */
extern bool cfd_recovery_hung_up(void);
extern void cfd_recovery_reload(void);
/* Says when the slot holds much WAL; again each time it has doubled. */
extern void cfd_recovery_warn_of_lag(void);
extern void cfd_recovery_tell_follow(XLogRecPtr position, TimeLineID timeline);
extern void cfd_recovery_checkpoint(void);
/* All that happened up to a position: sends it; how many records there were. */
extern uint64 cfd_recovery_feed(XLogRecPtr until);
/* After the WAL is sent: the keeper gives FIDs from now on. */
extern void cfd_recovery_begin_to_serve(void);

#endif
