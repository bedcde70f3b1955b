/*
 * session.h
 *	  Sessions of the keeper in PostgreSQL's shared memory, so that parallel
 *	  workers can join the session of their leader.
 *
 * Holds no key and no value. Nobody joins a session that its leader has not
 * announced to the keeper: the leader draws a pass when it begins a statement that
 * may have workers, and withdraws it when that ends (docs/security.md).
 *
 * Invariant: a backend writes only its own entry, and clears it when the
 * statement ends, its channel closes or it exits.
 */
#ifndef CFD_SESSION_SESSION_H
#define CFD_SESSION_SESSION_H

#include "wire/wire.h"

typedef struct CfdSession
{
	uint64		id;				/* 0: none */
	unsigned char pass[16];
} CfdSession;

extern void cfd_session_request_shmem(void);
extern void cfd_session_init_shmem(void);
/*
 * Lets parallel workers join this backend's session, until as many calls withdraw that. All
 * that was sent before is done when it returns, as after a fence.
 */
extern void cfd_session_announce(void);
extern void cfd_session_withdraw(void);
extern void cfd_session_clear(void);
/* The leader's session in a parallel worker; else, or if it has none, false. */
extern bool cfd_session_leader(CfdSession *session);

#endif
