/*
 * events.c
 *	  The wait event's name; see events.h.
 *
 * Invariant: costs nothing after the first call.
 */
#include "postgres.h"

#include "session/events.h"
#include "compat/compat.h"

uint32
cfd_wait_event(void)
{
#ifdef CFD_NAMED_WAIT_EVENTS
	static uint32 event = 0;

	if (event == 0)
		event = WaitEventExtensionNew("ConfideKeeper");
	return event;
#else
	return PG_WAIT_EXTENSION;
#endif
}
