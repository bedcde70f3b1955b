/*
 * connect.h
 *	  Opening a channel: socket, welcome message, shared memory. Sends no
 *	  request.
 *
 * Invariant: when cfd_connect raises an error, it leaves no descriptor and no
 * mapping behind.
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
/* confide.keeper_memory: the device that channels have their memory on, if the keeper says so */
extern char *cfd_keeper_memory;
/* Whether confide.keeper_socket names a keeper. */
extern bool cfd_keeper_wanted(void);
extern int	cfd_connect_timeout;

/* Opens a new session (session = 0), or joins an existing one as a parallel worker. */
extern void cfd_connect(CfdLink *link, uint64 session, const unsigned char *token);
extern void cfd_disconnect(CfdLink *link);

#endif
