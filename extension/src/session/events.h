/*
 * events.h
 *	  The wait event shown for a backend that waits for the keeper.
 *
 * Invariant: defined for every supported version of PostgreSQL.
 */
#ifndef CFD_SESSION_EVENTS_H
#define CFD_SESSION_EVENTS_H

#include "postgres.h"
#include "pgstat.h"
#include "utils/wait_event.h"

extern uint32 cfd_wait_event(void);

#endif
