/*
 * shared.h
 *	  Values that processes of a parallel query share.
 *
 * An operation on a value is a message that nobody waits for, on the channel of the process that
 * sends it. Another process may name the result only when the keeper has done it. There are three
 * ways on which it could come to name it, and each has its fence: parameters, which the leader
 * hands to workers when it launches them; rows in hash tables and in files that all processes fill
 * (both here); rows that workers hand to the leader (result/handover.h).
 *
 * Invariant: whatever a process learns from another one about a value, the keeper has done what
 * made it.
 */
#ifndef CFD_HOOKS_SHARED_H
#define CFD_HOOKS_SHARED_H

#include "postgres.h"
#include "executor/execdesc.h"

/* A plan that has been started: puts fences where processes share values. */
extern void cfd_shared_values(QueryDesc *query);

#endif
