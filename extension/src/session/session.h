/*
 * session.h
 *	  Sessions of the keeper in PostgreSQL's shared memory, so that parallel
 *	  workers can join the session of their leader.
 *
 * Holds no key and no value; a session's token serves only to join it.
 *
 * Invariant: a backend writes only its own entry, and clears it when its
 * channel closes or it exits.
 */
#ifndef CFD_SESSION_SESSION_H
#define CFD_SESSION_SESSION_H

#include "wire/wire.h"

typedef struct CfdSession
{
	uint64		id;				/* 0: none */
	unsigned char token[16];
} CfdSession;

extern void cfd_session_request_shmem(void);
extern void cfd_session_init_shmem(void);
extern void cfd_session_publish(const CfdWelcome *welcome);
extern void cfd_session_clear(void);
/* The leader's session in a parallel worker; else, or if it has none, false. */
extern bool cfd_session_leader(CfdSession *session);

#endif
