/*
 * spin.c
 *	  Adaptive spinning; see spin.h.
 *
 * A successful spin sets the budget to a few times the time it took. An
 * unsuccessful one halves it, down to zero. When sleeps turn out to be short,
 * an occasional spin probes with the largest budget; each unsuccessful probe
 * makes the next one rarer.
 *
 * Invariant: an idle channel spins once, then sleeps.
 */
#include "postgres.h"

#include "wire/spin.h"
#include "storage/s_lock.h"

#define SHORT_SLEEP_US 90
#define LEAST_NS 500
#define PROBE_FIRST 4
#define PROBE_LAST 1024

/* Duration of one pause instruction in nanoseconds, measured once per process. */
static uint32
pause_ns(void)
{
	static uint32 measured = 0;

	if (measured == 0)
	{
		uint32		best = 1000;

		for (int round = 0; round < 8; round++)
		{
			instr_time	start;
			instr_time	end;

			INSTR_TIME_SET_CURRENT(start);
			for (int i = 0; i < 100; i++)
				SPIN_DELAY();
			INSTR_TIME_SET_CURRENT(end);
			INSTR_TIME_SUBTRACT(end, start);
			best = Min(best, (uint32) (INSTR_TIME_GET_DOUBLE(end) * 1e9 / 100));
		}
		measured = Max(best, 1);
	}
	return measured;
}

void
cfd_spin_init(CfdSpin *spin)
{
	memset(spin, 0, sizeof(*spin));
	spin->budget_ns = CFD_SPIN_LIMIT_NS / 2;
	spin->probe_after = PROBE_FIRST;
}

static void
hit(CfdSpin *spin, uint32 took_ns)
{
	uint32		decayed = spin->budget_ns - spin->budget_ns / 16;

	spin->budget_ns = Min(Max(decayed, took_ns * 4 + 2000), CFD_SPIN_LIMIT_NS);
	spin->probing = false;
	spin->short_sleeps = 0;
	spin->probe_after = PROBE_FIRST;
}

static void
miss(CfdSpin *spin)
{
	if (spin->probing)
	{
		spin->probing = false;
		spin->probe_after = Min(spin->probe_after * 2, PROBE_LAST);
	}
	else
	{
		spin->budget_ns /= 2;
		if (spin->budget_ns < LEAST_NS)
			spin->budget_ns = 0;
	}
	spin->missed = true;
	INSTR_TIME_SET_CURRENT(spin->missed_at);
}

bool
cfd_spin(CfdSpin *spin, bool (*look) (void *), void *arg)
{
	uint32		pause = pause_ns();
	uint32		budget = spin->probing ? CFD_SPIN_LIMIT_NS : spin->budget_ns;
	uint32		rounds = budget / pause;

	/*
	 * The caller has just looked in vain, so pause before looking again.
	 * Polling without pauses keeps pulling the cache line from the keeper,
	 * which costs more than it gains.
	 */
	for (uint32 n = 0; n < rounds; n++)
	{
		SPIN_DELAY();
		if (look(arg))
		{
			hit(spin, (n + 1) * pause);
			return true;
		}
	}
	miss(spin);
	return false;
}

void
cfd_spin_woken(CfdSpin *spin)
{
	instr_time	now;

	if (!spin->missed)
		return;
	spin->missed = false;
	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, spin->missed_at);
	if (INSTR_TIME_GET_MICROSEC(now) > SHORT_SLEEP_US)
		return;
	if (++spin->short_sleeps >= spin->probe_after)
	{
		spin->short_sleeps = 0;
		spin->probing = true;
	}
}
