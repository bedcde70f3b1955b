/*
 * spin.h
 *	  Decides how long to poll before going to sleep, from how well polling
 *	  has worked so far.
 *
 * Follows the same rules as the keeper (crates/channel, spin.rs). Does not
 * sleep itself.
 *
 * Invariant: one wait never spins longer than CFD_SPIN_LIMIT_NS.
 */
#ifndef CFD_WIRE_SPIN_H
#define CFD_WIRE_SPIN_H

#include "postgres.h"
#include "portability/instr_time.h"

#define CFD_SPIN_LIMIT_NS 40000

typedef struct CfdSpin
{
	uint32		budget_ns;
	bool		probing;
	uint32		short_sleeps;
	uint32		probe_after;
	bool		missed;
	instr_time	missed_at;
} CfdSpin;

extern void cfd_spin_init(CfdSpin *spin);
/*
 * Polls until look(arg) returns true or the budget is used up. Returns the
 * last result.
 */
extern bool cfd_spin(CfdSpin *spin, bool (*look) (void *), void *arg);
/* To be called after the sleep that followed an unsuccessful cfd_spin. */
extern void cfd_spin_woken(CfdSpin *spin);

#endif
