/*
 * arena.h
 *	  Lifetime of temporary values: when the slots of the statement arena
 *	  are released, and how slots are numbered across connections.
 *
 * Does not decide which arena a value belongs to (value/place.h).
 *
 * Invariants: a backend never uses a slot number twice, not even after a
 * reconnect, so that a stale FID cannot name another value; the statement
 * arena is released only between client messages, when no portal can still
 * name one of its values.
 */
#ifndef CFD_SESSION_ARENA_H
#define CFD_SESSION_ARENA_H

#include "postgres.h"

/*
 * Called when all temporary values of the client's message are dead. Set once.
 * Must not raise an error.
 */
extern void (*cfd_arena_forgotten) (void);

extern void cfd_arena_open(uint32 arena);
extern void cfd_arena_reset(void);
/* Whether the statement arena may hold live values. */
extern bool cfd_arena_in_use(void);
/* Requests a callback at the end of the current client message. */
extern void cfd_arena_watch(void);
/* Whether an open portal may still name temporary values. */
extern bool cfd_arena_portals_open(void);
/* Releases every slot of the statement arena that was numbered so far. */
extern void cfd_arena_release(void);
/* Releases the slots of the statement arena below the given FID. */
extern void cfd_arena_release_below(uint64 limit);

/* Whether a cursor WITH HOLD exists. */
extern bool cfd_arena_held_cursors(void);

#endif
