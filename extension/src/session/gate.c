/*
 * gate.c
 *	  Shared state of recovery; see gate.h.
 *
 * Invariant: a backend's waits here are interruptible, except while a run is
 * being announced.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "session/events.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/timestamp.h"
#include "session/gate.h"

typedef struct CfdState
{
	uint64		incarnation;	/* protected by the gate; 0: none since server start */
	pg_atomic_uint64 admitted;	/* 0: none */
	pg_atomic_uint64 wake_at;
	bool		entries_lost;	/* protected by a lock of its users */
	CfdStandby	standby;
	ConditionVariable moved;	/* signalled when a standby's keeper makes progress */
	ConditionVariable checkpointed;
	slock_t		lock;			/* protects the fields below */
	Latch	   *latch;			/* the worker's latch */
	uint64		asked;			/* checkpoints requested */
	uint64		made;			/* ... and made */
	CfdProgress progress;
	char		reason[CFD_REASON_BYTES];
} CfdState;

#define GATE "confide recovery"

/* Interval, in ms, at which a waiting backend checks its time limit. */
#define LOOK_MS 100

static CfdState *state = NULL;
static LWLock *gate = NULL;
CfdStandby *cfd_standby = NULL;
int			cfd_standby_timeout = 30000;

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
		state->entries_lost = true;
		pg_atomic_init_u64(&state->admitted, 0);
		pg_atomic_init_u64(&state->wake_at, PG_UINT64_MAX);
		pg_atomic_init_u64(&state->standby.replayed, 0);
		pg_atomic_init_u64(&state->standby.applied, 0);
		pg_atomic_init_u32(&state->standby.follows, 0);
		ConditionVariableInit(&state->moved);
		ConditionVariableInit(&state->checkpointed);
		SpinLockInit(&state->lock);
		strlcpy(state->reason, "It waits for the recovery worker of Confide.", CFD_REASON_BYTES);
	}
	cfd_standby = &state->standby;
	gate = &GetNamedLWLockTranche(GATE)->lock;
	LWLockRelease(AddinShmemInitLock);
}

/* ---------- the worker's latch ---------- */

static void
wake_worker(void)
{
	Latch	   *latch;

	SpinLockAcquire(&state->lock);
	latch = state->latch;
	SpinLockRelease(&state->lock);
	/* A latch of a process that has exited is still valid shared memory. */
	if (latch != NULL)
		SetLatch(latch);
}

/* ---------- runs of the keeper ---------- */

void
cfd_state_announce(uint64 incarnation)
{
	SpinLockAcquire(&state->lock);
	state->latch = MyLatch;
	SpinLockRelease(&state->lock);
	LWLockAcquire(gate, LW_EXCLUSIVE);
	pg_atomic_write_u64(&state->admitted, 0);
	state->incarnation = incarnation;
	LWLockRelease(gate);
}

void
cfd_state_admit(void)
{
	/* Only the worker writes it. */
	pg_atomic_write_u64(&state->admitted, state->incarnation);
}

bool
cfd_state_admitted(uint64 incarnation)
{
	/* There is no worker in single-user mode or during pg_upgrade. */
	if (state == NULL || !IsUnderPostmaster || IsBinaryUpgrade)
		return true;
	if (pg_atomic_read_u64(&state->admitted) == incarnation)
		return true;
	wake_worker();
	return false;
}

static void
need_state(void)
{
	if (state == NULL)
		elog(ERROR, "confide is not among shared_preload_libraries");
}

bool *
cfd_state_entries_lost(void)
{
	need_state();
	return &state->entries_lost;
}

bool
cfd_state_enter(uint64 incarnation)
{
	need_state();
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

static void
cfd_gate_not_ready(const char *what)
{
	char	   *reason = cfd_state_reason();

	ereport(ERROR,
			(errcode(ERRCODE_CANNOT_CONNECT_NOW),
			 errmsg("%s", what),
			 reason != NULL ? errdetail("%s", reason) : 0,
			 errhint("Try again soon; if it stays so, the server's log says why.")));
}

/* ---------- checkpoints ---------- */

void
cfd_state_wake_at(XLogRecPtr position)
{
	pg_atomic_write_u64(&state->wake_at, position);
}

void
cfd_state_note_wal(XLogRecPtr end)
{
	uint64		wake_at;

	if (state == NULL)
		return;
	wake_at = pg_atomic_read_u64(&state->wake_at);
	if (likely(end < wake_at) ||
		!pg_atomic_compare_exchange_u64(&state->wake_at, &wake_at, PG_UINT64_MAX))
		return;
	wake_worker();
}

XLogRecPtr
cfd_state_checkpoint(void)
{
	uint64		ticket;
	uint64		failures;
	XLogRecPtr	position = InvalidXLogRecPtr;
	bool		failed = false;

	need_state();
	SpinLockAcquire(&state->lock);
	ticket = ++state->asked;
	failures = state->progress.failures;
	SpinLockRelease(&state->lock);
	wake_worker();
	ConditionVariablePrepareToSleep(&state->checkpointed);
	for (;;)
	{
		SpinLockAcquire(&state->lock);
		if (state->made >= ticket)
			position = state->progress.checkpoint;
		failed = state->progress.failures != failures;
		SpinLockRelease(&state->lock);
		if (!XLogRecPtrIsInvalid(position) || failed)
			break;
		ConditionVariableSleep(&state->checkpointed, cfd_wait_event());
	}
	ConditionVariableCancelSleep();
	if (XLogRecPtrIsInvalid(position))
		cfd_gate_not_ready("Confide's keeper made no checkpoint");
	return position;
}

bool
cfd_state_asked(uint64 *ticket)
{
	bool		asked;

	SpinLockAcquire(&state->lock);
	*ticket = state->asked;
	asked = state->asked > state->made;
	SpinLockRelease(&state->lock);
	return asked;
}

void
cfd_state_checkpointed(uint64 ticket, XLogRecPtr position)
{
	TimestampTz now = GetCurrentTimestamp();

	SpinLockAcquire(&state->lock);
	state->made = ticket;
	state->progress.checkpoint = position;
	state->progress.checkpoint_time = now;
	state->progress.checkpoints++;
	SpinLockRelease(&state->lock);
	ConditionVariableBroadcast(&state->checkpointed);
}

void
cfd_state_failed(void)
{
	SpinLockAcquire(&state->lock);
	state->progress.failures++;
	SpinLockRelease(&state->lock);
	ConditionVariableBroadcast(&state->checkpointed);
}

void
cfd_state_set_store(uint64 store, XLogRecPtr checkpoint)
{
	SpinLockAcquire(&state->lock);
	state->progress.store = store;
	state->progress.checkpoint = checkpoint;
	SpinLockRelease(&state->lock);
}

void
cfd_state_progress(CfdProgress *progress)
{
	memset(progress, 0, sizeof(*progress));
	if (state == NULL)
		return;
	SpinLockAcquire(&state->lock);
	*progress = state->progress;
	SpinLockRelease(&state->lock);
}

/* ---------- standby ---------- */

void
cfd_state_note_replayed(XLogRecPtr end)
{
	if (state == NULL)
		return;
	pg_atomic_write_u64(&state->standby.replayed, end);
	/* The page change that follows must become visible after this. */
	pg_memory_barrier();
	if (pg_atomic_read_u32(&state->standby.follows) != 0)
		wake_worker();
}

XLogRecPtr
cfd_state_replayed(void)
{
	return pg_atomic_read_u64(&state->standby.replayed);
}

void
cfd_state_set_applied(XLogRecPtr position, bool follows)
{
	pg_atomic_write_u64(&state->standby.applied, position);
	pg_atomic_write_u32(&state->standby.follows, follows);
	ConditionVariableBroadcast(&state->moved);
}

/* Waits for a standby's keeper, at most confide.standby_timeout. */
static void
await_keeper(bool (*come) (XLogRecPtr), XLogRecPtr position, const char *what)
{
	TimestampTz last = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), cfd_standby_timeout);
	bool		late = false;

	ConditionVariablePrepareToSleep(&state->moved);
	while (!come(position) && !late)
	{
		if (ConditionVariableTimedSleep(&state->moved, LOOK_MS, cfd_wait_event()))
			late = GetCurrentTimestamp() >= last;
		wake_worker();
	}
	ConditionVariableCancelSleep();
	if (!come(position))
		cfd_gate_not_ready(what);
}

static bool
has_applied(XLogRecPtr position)
{
	return pg_atomic_read_u64(&state->standby.applied) >= position;
}

static bool
gives_fids(XLogRecPtr position)
{
	(void) position;
	return pg_atomic_read_u32(&state->standby.follows) == 0;
}

void
cfd_state_catch_up_slowly(void)
{
	/* The startup process and the worker would wait for themselves. */
	if (!IsUnderPostmaster || MyDatabaseId == InvalidOid)
		return;
	await_keeper(has_applied, cfd_state_replayed(),
				 "Confide's keeper is behind the standby's recovery");
}

void
cfd_state_await_promotion(void)
{
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("cannot store values of protected columns during recovery")));
	await_keeper(gives_fids, InvalidXLogRecPtr,
				 "Confide's keeper still follows the recovery that has ended");
}
