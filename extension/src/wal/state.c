/*
 * state.c
 *	  The recovery worker's state in shared memory: see state.h.
 *
 * Invariant: a backend waits here only while a run is being announced.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "wal/state.h"

typedef struct CfdState
{
	uint64		incarnation;	/* under the gate; 0: none since PostgreSQL started */
	pg_atomic_uint64 wake_at;
	slock_t		lock;			/* of what follows */
	Latch	   *latch;			/* of the worker */
	char		reason[CFD_REASON_BYTES];
} CfdState;

#define GATE "confide recovery"

static CfdState *state = NULL;
static LWLock *gate = NULL;

void
cfd_state_request_shmem(void)
{
	RequestAddinShmemSpace(sizeof(CfdState));
	RequestNamedLWLockTranche(GATE, 1);
}

void
cfd_state_init_shmem(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	state = ShmemInitStruct("confide recovery", sizeof(CfdState), &found);
	if (!found)
	{
		memset(state, 0, sizeof(*state));
		pg_atomic_init_u64(&state->wake_at, PG_UINT64_MAX);
		SpinLockInit(&state->lock);
	}
	gate = &GetNamedLWLockTranche(GATE)->lock;
	LWLockRelease(AddinShmemInitLock);
}

void
cfd_state_announce(uint64 incarnation)
{
	SpinLockAcquire(&state->lock);
	state->latch = MyLatch;
	SpinLockRelease(&state->lock);
	LWLockAcquire(gate, LW_EXCLUSIVE);
	state->incarnation = incarnation;
	LWLockRelease(gate);
}

bool
cfd_state_enter(uint64 incarnation)
{
	if (state == NULL)
		elog(ERROR, "confide is not among shared_preload_libraries");
	LWLockAcquire(gate, LW_SHARED);
	if (state->incarnation == 0 || state->incarnation == incarnation)
		return true;
	LWLockRelease(gate);
	return false;
}

void
cfd_state_leave(void)
{
	LWLockRelease(gate);
}

void
cfd_state_set_reason(const char *reason)
{
	char		copy[CFD_REASON_BYTES];

	memset(copy, 0, sizeof(copy));
	if (reason != NULL)
		strlcpy(copy, reason, sizeof(copy));
	SpinLockAcquire(&state->lock);
	memcpy(state->reason, copy, sizeof(copy));
	SpinLockRelease(&state->lock);
}

char *
cfd_state_reason(void)
{
	char		copy[CFD_REASON_BYTES];

	if (state == NULL)
		return NULL;
	SpinLockAcquire(&state->lock);
	memcpy(copy, state->reason, sizeof(copy));
	SpinLockRelease(&state->lock);
	return copy[0] != '\0' ? pstrdup(copy) : NULL;
}

void
cfd_state_wake_at(XLogRecPtr position)
{
	pg_atomic_write_u64(&state->wake_at, position);
}

void
cfd_state_note_wal(XLogRecPtr end)
{
	uint64		wake_at;
	Latch	   *latch;

	if (state == NULL)
		return;
	wake_at = pg_atomic_read_u64(&state->wake_at);
	if (likely(end < wake_at) ||
		!pg_atomic_compare_exchange_u64(&state->wake_at, &wake_at, PG_UINT64_MAX))
		return;
	SpinLockAcquire(&state->lock);
	latch = state->latch;
	SpinLockRelease(&state->lock);
	/* Latches of processes that are gone remain valid memory. */
	if (latch != NULL)
		SetLatch(latch);
}
