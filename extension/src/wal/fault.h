/*
 * fault.h
 *	  Fault injection points for tests, where a process dies as if by
 *	  SIGKILL (tests/durability).
 *
 * Invariant: nothing happens unless confide.fault_point is set, which only a
 * superuser can do.
 */
#ifndef CFD_WAL_FAULT_H
#define CFD_WAL_FAULT_H

#include "postgres.h"

/*
 * GUC: "name" to die there, "name/N" to do so one time in N, "stop name" to
 * stop there (SIGSTOP).
 */
extern char *cfd_fault_point;

extern void cfd_fault_at(const char *name);

static inline void
cfd_fault(const char *name)
{
	if (unlikely(cfd_fault_point != NULL && cfd_fault_point[0] != '\0'))
		cfd_fault_at(name);
}

#endif
