/*
 * state.h
 *	  What the recovery worker tells the backends, in shared memory: which run
 *	  of the keeper is the current one, and why none serves.
 *
 * Invariant: a run is announced before the worker takes the position up to
 * which it will send the WAL to it.
 */
#ifndef CFD_STATE_H
#define CFD_STATE_H

#include "postgres.h"
#include "access/xlogdefs.h"

#define CFD_REASON_BYTES 512

extern void cfd_state_request_shmem(void);
extern void cfd_state_init_shmem(void);

/* Worker: this run of the keeper is the current one. A full barrier. */
extern void cfd_state_announce(uint64 incarnation);
/* Backend: no other run has been announced. */
extern bool cfd_state_is_current(uint64 incarnation);

/* Worker: why the keeper does not serve; NULL when it does. */
extern void cfd_state_set_reason(const char *reason);
/* Backend: a copy of the reason, NULL when there is none. */
extern char *cfd_state_reason(void);

/* Worker: wake me once a record ends at or after this position. */
extern void cfd_state_wake_at(XLogRecPtr position);
/* Backend: a record ends here. */
extern void cfd_state_note_wal(XLogRecPtr end);

#endif
