/*
 * shown.h
 *	  For whom the text of a protected value is made: in a client's session it is an envelope that
 *	  only this session's client can open, so it must go to it and be kept nowhere.
 *
 * Says nothing of sessions without a client: their envelopes are for dumps.
 *
 * Invariant: while a query, DO or CALL runs, a value is written for the client's receiver or
 * into a message, and nowhere else.
 */
#ifndef CFD_VALUE_SHOWN_H
#define CFD_VALUE_SHOWN_H

#include "postgres.h"
#include "fmgr.h"

/* What runs; kept by hooks/statement.c. */
typedef struct CfdRunning
{
	char	   *outermost;		/* where in the stack the outermost query, DO or CALL began; NULL: none runs */
	bool		showing;		/* a row is being written to the client */
} CfdRunning;

extern CfdRunning cfd_running;

/* Refuses to make a text of a value that would be kept. */
extern void cfd_check_shown(const FmgrInfo *flinfo, uint8 type);

#endif
