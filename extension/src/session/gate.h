/*
 * gate.h
 *	  What the recovery worker, the backends and PostgreSQL's own recovery tell each
 *	  other, in shared memory: which run of the keeper is the current one and may be
 *	  used, why none may, and how far a standby's keeper has come.
 *
 * Invariants: a run is announced before the worker takes the position up to
 * which it will send the WAL to it; no run is announced while a backend is
 * between entering and leaving; a backend uses a run only when the worker has
 * admitted it.
 */
#ifndef CFD_SESSION_GATE_H
#define CFD_SESSION_GATE_H

#include "postgres.h"
#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "port/atomics.h"

#define CFD_REASON_BYTES 512

/* What the view confide_stat_recovery shows. */
typedef struct CfdProgress
{
	uint64		store;			/* the store's number; 0: none known */
	XLogRecPtr	checkpoint;		/* the keeper's last checkpoint */
	TimestampTz checkpoint_time;	/* 0: not by this worker */
	uint64		checkpoints;	/* made */
	uint64		failures;		/* attempts that ended with an error */
} CfdProgress;

extern void cfd_state_request_shmem(void);
extern void cfd_state_init_shmem(void);

/* ---------- runs of the keeper ---------- */

/* Worker: this run of the keeper is the current one, and not admitted yet. */
extern void cfd_state_announce(uint64 incarnation);
/* Worker: backends may use the announced run. */
extern void cfd_state_admit(void);
/* Backend: this run may be used. Hurries the worker if not. */
extern bool cfd_state_admitted(uint64 incarnation);
/*
 * Backend: no other run has been announced, and none will be until
 * cfd_state_leave. False: another run has; there is nothing to leave.
 */
extern bool cfd_state_enter(uint64 incarnation);
extern void cfd_state_leave(void);

/* Worker: why the keeper does not serve; NULL when it does. */
extern void cfd_state_set_reason(const char *reason);
/* Backend: a copy of the reason, NULL when there is none. */
extern char *cfd_state_reason(void);

/* ---------- checkpoints ---------- */

/* Worker: wake me once a record ends at or after this position. */
extern void cfd_state_wake_at(XLogRecPtr position);
/* Backend: a record ends here. */
extern void cfd_state_note_wal(XLogRecPtr end);
/* Backend: asks for a checkpoint, waits for it; its position. */
extern XLogRecPtr cfd_state_checkpoint(void);
/* Worker: whether somebody asks for a checkpoint; to be told when it is made. */
extern bool cfd_state_asked(uint64 *ticket);
extern void cfd_state_checkpointed(uint64 ticket, XLogRecPtr position);
/* Worker: an attempt has failed. */
extern void cfd_state_failed(void);
extern void cfd_state_set_store(uint64 store, XLogRecPtr checkpoint);
extern void cfd_state_progress(CfdProgress *progress);

/* ---------- a standby ---------- */

/*
 * How far redo records have been replayed by PostgreSQL, and have been applied by
 * the keeper. A FID that a backend finds on a page has a redo record that was
 * replayed before; so it resolves once the keeper has come as far.
 */
typedef struct CfdStandby
{
	pg_atomic_uint64 replayed;
	pg_atomic_uint64 applied;
	pg_atomic_uint32 follows;	/* the keeper gives no FIDs yet */
} CfdStandby;

/* GUC: longest wait for the keeper of a standby to come as far as its recovery. */
extern int	cfd_standby_timeout;

extern CfdStandby *cfd_standby;

/* PostgreSQL's recovery: a redo record that ends here. */
extern void cfd_state_note_replayed(XLogRecPtr end);
/* Worker: the keeper has come to here, and follows a standby or not. */
extern void cfd_state_set_applied(XLogRecPtr position, bool follows);
extern XLogRecPtr cfd_state_replayed(void);

extern void cfd_state_catch_up_slowly(void);
extern void cfd_state_await_promotion(void);

/* Backend: waits until the keeper knows every FID that we may have read. */
static inline void
cfd_state_catch_up(void)
{
	if (cfd_standby == NULL)
		return;
	if (unlikely(pg_atomic_read_u64(&cfd_standby->applied) < pg_atomic_read_u64(&cfd_standby->replayed)))
		cfd_state_catch_up_slowly();
}

/* Backend: waits, after a standby was promoted, until the keeper gives FIDs. */
static inline void
cfd_state_need_fids(void)
{
	if (cfd_standby != NULL && unlikely(pg_atomic_read_u32(&cfd_standby->follows) != 0))
		cfd_state_await_promotion();
}

#endif
