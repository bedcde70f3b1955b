/*
 * pins.c
 *	  Pins and progress in shared memory; see pins.h.
 *
 * A writer counts its writes, and an odd count means that a write is under
 * way. A collection that reads an even count after it has taken its boundary
 * need not wait for that backend: whatever the backend promotes later is
 * allocated beyond the boundary.
 *
 * Invariants: as in pins.h.
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat/compat.h"
#include "session/events.h"
#include "session/pins.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

/* Interval, in ms, at which a collection checks whether a writer is done. */
#define LOOK_MS 5

typedef struct Pin
{
	pg_atomic_uint64 writes;	/* odd: a write is under way */
	pg_atomic_uint64 plannings; /* odd: a planning is under way */
	pg_atomic_uint32 holder;	/* database of a holder, or InvalidOid */
	int			pid;
	CfdGcProgress progress;
	char		padding[PG_CACHE_LINE_SIZE];
} Pin;

/*
 * Nesting level of the transaction in which a batch of rows is promoted but
 * not completely written; 0 if there is none. While it is set, unpinning has
 * no effect.
 */
static int	held = 0;

/* Entry 0 belongs to no backend: its `writes` counts sweeps. */
static Pin *pins = NULL;
static Pin *mine = NULL;

static Size
bytes(void)
{
	return mul_size(sizeof(Pin), MaxBackends + 1);
}

void
cfd_pins_request_shmem(void)
{
	RequestAddinShmemSpace(bytes());
}

void
cfd_pins_init_shmem(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	pins = ShmemInitStruct("confide pins", bytes(), &found);
	if (!found)
	{
		memset(pins, 0, bytes());
		for (int i = 0; i <= MaxBackends; i++)
		{
			pg_atomic_init_u64(&pins[i].writes, 0);
			pg_atomic_init_u64(&pins[i].plannings, 0);
			pg_atomic_init_u32(&pins[i].holder, 0);
		}
	}
	LWLockRelease(AddinShmemInitLock);
}

static void
at_exit(int code, Datum arg)
{
	(void) code;
	(void) arg;
	cfd_release_writer();
	cfd_unpin_planner();
	cfd_unpin_holder();
	memset(&mine->progress, 0, sizeof(mine->progress));
	mine = NULL;
}

/* This backend's entry. Raises an error in a process that is not a backend. */
static Pin *
own(void)
{
	if (unlikely(mine == NULL))
	{
		if (pins == NULL || CFD_BACKEND_NUMBER <= 0 || CFD_BACKEND_NUMBER > MaxBackends)
			elog(ERROR, "confide: this process cannot hold identifiers");
		on_shmem_exit(at_exit, (Datum) 0);
		mine = &pins[CFD_BACKEND_NUMBER];
		mine->pid = MyProcPid;
	}
	return mine;
}

/* ---------- writers, planners and holders ---------- */

/* Makes a counter odd. */
static void
pin_begin(pg_atomic_uint64 *counter)
{
	uint64		count = pg_atomic_read_u64(counter);

	if ((count & 1) == 0)
		pg_atomic_write_u64(counter, count + 1);
	/* Other processes must see the pin before anything that is done with it. */
	pg_memory_barrier();
}

/* Makes it even. */
static void
pin_end(pg_atomic_uint64 *counter)
{
	uint64		count = pg_atomic_read_u64(counter);

	if ((count & 1) == 0)
		return;
	pg_write_barrier();			/* after what was done with it, such as a row on its page */
	pg_atomic_write_u64(counter, count + 1);
}

void
cfd_pin_writer(void)
{
	pin_begin(&own()->writes);
}

void
cfd_unpin_writer(void)
{
	if (mine != NULL && held == 0)
		pin_end(&mine->writes);
}

void
cfd_pin_planner(void)
{
	pin_begin(&own()->plannings);
}

void
cfd_unpin_planner(void)
{
	if (mine != NULL)
		pin_end(&mine->plannings);
}

void
cfd_hold_writer(void)
{
	cfd_pin_writer();
	held = GetCurrentTransactionNestLevel();
}

bool
cfd_writer_held(void)
{
	return held != 0;
}

void
cfd_release_writer(void)
{
	held = 0;
	cfd_unpin_writer();
}

void
cfd_abort_writer(int level)
{
	if (held >= level)
		held = 0;
	cfd_unpin_writer();
}

void
cfd_pin_holder(void)
{
	pg_atomic_write_u32(&own()->holder, MyDatabaseId);
	pg_memory_barrier();
}

void
cfd_unpin_holder(void)
{
	if (mine != NULL)
		pg_atomic_write_u32(&mine->holder, 0);
}

bool
cfd_is_holder(void)
{
	return mine != NULL && pg_atomic_read_u32(&mine->holder) != 0;
}

/* Waits until a counter that is odd has changed. */
static bool
cfd_pins_wait_for(pg_atomic_uint64 *counter, TimestampTz deadline)
{
	uint64		seen = pg_atomic_read_u64(counter);

	while ((seen & 1) == 1 && pg_atomic_read_u64(counter) == seen)
	{
		if (GetCurrentTimestamp() >= deadline)
			return false;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, LOOK_MS, cfd_wait_event());
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return true;
}

bool
cfd_wait_for_writers(int limit_ms)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), limit_ms);

	pg_memory_barrier();
	for (int i = 1; i <= MaxBackends; i++)
	{
		if (!cfd_pins_wait_for(&pins[i].writes, deadline))
			return false;
	}
	return true;
}

bool
cfd_wait_for_planners(int limit_ms)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), limit_ms);

	pg_memory_barrier();
	for (int i = 1; i <= MaxBackends; i++)
	{
		if (&pins[i] != mine && !cfd_pins_wait_for(&pins[i].plannings, deadline))
			return false;
	}
	return true;
}

int
cfd_any_holder(void)
{
	pg_memory_barrier();
	for (int i = 1; i <= MaxBackends; i++)
	{
		if (pg_atomic_read_u32(&pins[i].holder) == MyDatabaseId)
			return pins[i].pid;
	}
	return 0;
}

uint64
cfd_sweeps(void)
{
	return pins != NULL ? pg_atomic_read_u64(&pins[0].writes) : 0;
}

void
cfd_note_sweep(void)
{
	(void) pg_atomic_fetch_add_u64(&pins[0].writes, 1);
}

/* ---------- progress ---------- */

volatile CfdGcProgress *
cfd_gc_progress(void)
{
	return &own()->progress;
}

bool
cfd_gc_progress_of(int n, CfdGcProgress *copy)
{
	if (pins == NULL || n >= MaxBackends)
		return false;
	/* The copy may be torn, which is acceptable for a progress view. */
	*copy = pins[n + 1].progress;
	return true;
}
