/*
 * gate.h
 *	  Shared state of the recovery worker, the backends and the startup
 *	  process.
 *
 * Tells which run of the keeper is current and whether it may be used, why
 * none may be used, and how far a standby's keeper has applied the WAL.
 *
 * Invariants: a run is announced before the worker determines the WAL position
 * up to which it feeds that run; no run is announced while a backend is
 * between cfd_state_enter and cfd_state_leave; a backend uses a run only after
 * the worker has admitted it.
 */
#ifndef CFD_SESSION_GATE_H
#define CFD_SESSION_GATE_H

#include "postgres.h"
#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "port/atomics.h"

#define CFD_REASON_BYTES 512

/* Contents of the view confide_stat_recovery. */
typedef struct CfdProgress
{
	uint64		store;			/* identifier of the keeper's store; 0: unknown */
	XLogRecPtr	checkpoint;		/* position of the keeper's last checkpoint */
	TimestampTz checkpoint_time;	/* 0: not made by this worker */
	uint64		checkpoints;	/* checkpoints made */
	uint64		failures;		/* failed attempts */
} CfdProgress;

extern void cfd_state_request_shmem(void);
extern void cfd_state_init_shmem(void);

/* ---------- runs of the keeper ---------- */

/* Worker: declares a run of the keeper current. It is not admitted yet. */
extern void cfd_state_announce(uint64 incarnation);
/* Worker: allows backends to use the announced run. */
extern void cfd_state_admit(void);
/* Backend: whether this run may be used. If not, wakes the worker. */
extern bool cfd_state_admitted(uint64 incarnation);
/*
 * Backend: returns true if this is the announced run, and prevents the
 * announcement of another one until cfd_state_leave. If it returns false,
 * cfd_state_leave must not be called.
 */
extern bool cfd_state_enter(uint64 incarnation);
extern void cfd_state_leave(void);

/* Worker: sets the reason why the keeper is not available; NULL clears it. */
extern void cfd_state_set_reason(const char *reason);
/* Backend: a palloc'd copy of that reason, or NULL. */
extern char *cfd_state_reason(void);

/*
 * Backend: whether entries of ledgers that the keeper has made may be missing
 * in the WAL. True after a server start. Protected by the lock under which
 * these entries are written (ledger/transaction.c).
 */
extern bool *cfd_state_entries_lost(void);

/* ---------- checkpoints ---------- */

/* Worker: asks to be woken when a WAL record ends at or after this position. */
extern void cfd_state_wake_at(XLogRecPtr position);
/* Backend: reports the end position of a WAL record. */
extern void cfd_state_note_wal(XLogRecPtr end);
/* Backend: requests a checkpoint, waits for it and returns its position. */
extern XLogRecPtr cfd_state_checkpoint(void);
/*
 * Worker: whether a checkpoint is requested. *ticket is to be passed to
 * cfd_state_checkpointed.
 */
extern bool cfd_state_asked(uint64 *ticket);
extern void cfd_state_checkpointed(uint64 ticket, XLogRecPtr position);
/* Worker: counts a failed attempt. */
extern void cfd_state_failed(void);
extern void cfd_state_set_store(uint64 store, XLogRecPtr checkpoint);
extern void cfd_state_progress(CfdProgress *progress);

/* ---------- standby ---------- */

/*
 * How far PostgreSQL has replayed redo records, and how far the keeper has
 * applied them. The redo record of a FID is replayed before any page shows
 * that FID, so a backend can resolve every FID it finds once the keeper has
 * caught up with replay.
 */
typedef struct CfdStandby
{
	pg_atomic_uint64 replayed;
	pg_atomic_uint64 applied;
	pg_atomic_uint32 follows;	/* not 0: the keeper follows and allocates no FIDs yet */
} CfdStandby;

/* GUC: longest wait for a standby's keeper to catch up with replay, in ms. */
extern int	cfd_standby_timeout;

extern CfdStandby *cfd_standby;

/* Startup process: reports the end position of a replayed redo record. */
extern void cfd_state_note_replayed(XLogRecPtr end);
/*
 * Worker: reports how far the keeper has applied the WAL, and whether it
 * follows a primary.
 */
extern void cfd_state_set_applied(XLogRecPtr position, bool follows);
extern XLogRecPtr cfd_state_replayed(void);

extern void cfd_state_catch_up_slowly(void);
extern void cfd_state_await_promotion(void);

/* Backend: waits until the keeper knows every FID that this backend may have read. */
static inline void
cfd_state_catch_up(void)
{
	if (cfd_standby == NULL)
		return;
	if (unlikely(pg_atomic_read_u64(&cfd_standby->applied) < pg_atomic_read_u64(&cfd_standby->replayed)))
		cfd_state_catch_up_slowly();
}

/* Backend: after a promotion, waits until the keeper allocates FIDs. */
static inline void
cfd_state_need_fids(void)
{
	if (cfd_standby != NULL && unlikely(pg_atomic_read_u32(&cfd_standby->follows) != 0))
		cfd_state_await_promotion();
}

#endif
