/*
 * arena.h
 *	  Lifetime of temporary values: when slots of the statement arena are
 *	  released, and the numbers of slots across connections.
 *
 * Does not decide which arena a value goes to (value/place.h).
 *
 * Invariants: within one backend a slot number is never used twice, also not
 * after a reconnect, so a stale FID cannot name another value; the statement
 * arena is released only between messages of the client, when no portal could
 * still name a value.
 */
#ifndef CFD_SESSION_ARENA_H
#define CFD_SESSION_ARENA_H

#include "postgres.h"

/* Called when all temporary values of the client's message are done; set once. Raises no error. */
extern void (*cfd_arena_forgotten) (void);

extern void cfd_arena_open(uint32 arena);
extern void cfd_arena_reset(void);
/* Whether values of the statement arena may be alive. */
extern bool cfd_arena_in_use(void);
/* Have ourselves called when the current message of the client is done. */
extern void cfd_arena_watch(void);
/* Whether some portal may still name temporary values. */
extern bool cfd_arena_portals_open(void);
/* Releases everything numbered so far in the statement arena. */
extern void cfd_arena_release(void);
/* Releases the slots of the statement arena below a FID. */
extern void cfd_arena_release_below(uint64 limit);

/* Whether there is a cursor WITH HOLD. */
extern bool cfd_arena_held_cursors(void);

#endif
