/*
 * connect.h
 *	  Opening a channel: socket, first exchange, shared memory. Sends no message.
 *
 * Invariant: when cfd_connect raises an error, no descriptor and no mapping is
 * left behind.
 */
#ifndef CFD_SESSION_CONNECT_H
#define CFD_SESSION_CONNECT_H

#include "wire/wire.h"

typedef struct CfdLink
{
	int			sock;
	char	   *base;			/* CFD_MAPPING_BYTES of shared memory */
	CfdWelcome	welcome;
} CfdLink;

/* GUCs */
extern char *cfd_keeper_socket;
/* The setting names a keeper. */
extern bool cfd_keeper_wanted(void);
extern int	cfd_connect_timeout;

/* Opens a new session, or joins one (session not 0) as a parallel worker. */
extern void cfd_connect(CfdLink *link, uint64 session, const unsigned char *token);
extern void cfd_disconnect(CfdLink *link);

#endif
