/*
 * state.h
 *	  What the recovery worker tells the backends, in shared memory: which run
 *	  of the keeper is the current one, and why none serves.
 *
 * Invariants: a run is announced before the worker takes the position up to
 * which it will send the WAL to it; no run is announced while a backend is
 * between entering and leaving.
 */
#ifndef CFD_STATE_H
#define CFD_STATE_H

#include "postgres.h"
#include "access/xlogdefs.h"

#define CFD_REASON_BYTES 512

extern void cfd_state_request_shmem(void);
extern void cfd_state_init_shmem(void);

/* Worker: this run of the keeper is the current one. */
extern void cfd_state_announce(uint64 incarnation);
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

/* Worker: wake me once a record ends at or after this position. */
extern void cfd_state_wake_at(XLogRecPtr position);
/* Backend: a record ends here. */
extern void cfd_state_note_wal(XLogRecPtr end);

#endif
