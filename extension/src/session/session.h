/*
 * session.h
 *	  The leaders' keeper sessions in shared memory, for parallel workers
 *	  to join.
 *
 * Holds no keys and no values. A session can be joined only while its leader
 * has announced that to the keeper: the leader draws a random pass when it
 * starts a statement that may have workers, and withdraws it when the
 * statement ends (docs/security.md).
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
 * Lets parallel workers join this backend's session. Calls nest: the
 * permission ends with the matching cfd_session_withdraw. Everything sent
 * before has been processed when cfd_session_announce returns, as after a
 * fence.
 */
extern void cfd_session_announce(void);
extern void cfd_session_withdraw(void);
extern void cfd_session_clear(void);
/*
 * In a parallel worker, gets the leader's session. Returns false if this is no
 * worker or the leader has no session.
 */
extern bool cfd_session_leader(CfdSession *session);

#endif
