/*
 * shown.h
 *	  Decides whether the text of a protected value may be produced. In a
 *	  client's session that text is an envelope which only this session's
 *	  client can open, so it must be sent to the client and must not be
 *	  stored.
 *
 * Does not restrict sessions without a client, whose envelopes are for dumps.
 *
 * Invariant: while a query, DO or CALL runs, a value's text is produced only
 * for the client's receiver or for a message.
 */
#ifndef CFD_VALUE_SHOWN_H
#define CFD_VALUE_SHOWN_H

#include "postgres.h"
#include "fmgr.h"

/* State of the running statement, maintained by hooks/statement.c. */
typedef struct CfdRunning
{
	char	   *outermost;		/* stack address of the outermost query, DO or CALL */
	bool		showing;		/* a row is being written to the client */
} CfdRunning;

extern CfdRunning cfd_running;

/* Whether the text of a value is for a message: not for a row. */
extern bool cfd_is_in_message(const FmgrInfo *flinfo);
/* The same, of a message to the client that the keeper seals it for. */
extern bool cfd_is_quoted(const FmgrInfo *flinfo);

/* Raises an error if the text of a value would be stored. */
extern void cfd_check_shown(const FmgrInfo *flinfo, uint8 type);

#endif
