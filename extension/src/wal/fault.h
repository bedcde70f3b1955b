/*
 * fault.h
 *	  Points at which tests have a process die, as if by SIGKILL (tests/durability).
 *
 * Invariant: without the setting confide.fault_point, which only a superuser can set,
 * nothing happens.
 */
#ifndef CFD_WAL_FAULT_H
#define CFD_WAL_FAULT_H

#include "postgres.h"

/* GUC: "name" or "name/N": one time in N; "stop name": it stops there (SIGSTOP). */
extern char *cfd_fault_point;

extern void cfd_fault_at(const char *name);

static inline void
cfd_fault(const char *name)
{
	if (unlikely(cfd_fault_point != NULL && cfd_fault_point[0] != '\0'))
		cfd_fault_at(name);
}

#endif
