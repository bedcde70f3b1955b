/*
 * shared.h
 *	  Values shared by the processes of a parallel query.
 *
 * An operation on a value is a one-way message on the channel of the process
 * that sends it. Another process may name the result only after the keeper has
 * processed that message. It can learn of the result in three ways, each of
 * which has a fence: parameters that the leader passes to workers at launch;
 * rows in hash tables and files that all processes fill (both handled here);
 * and rows that workers send to the leader (result/handover.h).
 *
 * Invariant: whatever one process learns from another about a value, the
 * keeper has processed the message that created it.
 */
#ifndef CFD_HOOKS_SHARED_H
#define CFD_HOOKS_SHARED_H

#include "postgres.h"
#include "executor/execdesc.h"

/* Adds fences to an initialised plan where processes share values. */
extern void cfd_shared_values(QueryDesc *query);

#endif
