/*
 * ticket.h
 *	  What lets this session take in export envelopes: confide.restore_ticket.
 *
 * Does not know what is in it, nor when it is told (session/channel.c).
 *
 * Invariant: the keeper is told of each ticket that the setting has had while we sent messages.
 */
#ifndef CFD_SESSION_TICKET_H
#define CFD_SESSION_TICKET_H

#include "postgres.h"
#include "lib/stringinfo.h"

extern void cfd_ticket_init(void);
extern bool cfd_has_ticket(void);
/* The body of the message. False outside a transaction, where the database has no name. */
extern bool cfd_ticket_body(StringInfo body);

#endif
