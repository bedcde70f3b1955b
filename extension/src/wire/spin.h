/*
 * spin.h
 *	  How long to look again before going to sleep, learnt from what looking
 *	  again has brought: the same rules as the keeper's (crates/channel,
 *	  spin.rs). Not the sleeping itself.
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
/* Looks until a look is true or the budget is used up. */
extern bool cfd_spin(CfdSpin *spin, bool (*look) (void *), void *arg);
/* The sleep that followed the last miss is over. */
extern void cfd_spin_woken(CfdSpin *spin);

#endif
