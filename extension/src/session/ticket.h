/*
 * ticket.h
 *	  The setting confide.restore_ticket, which permits this session to
 *	  import export envelopes.
 *
 * Does not know the ticket's contents, nor when it is sent
 * (session/channel.c).
 *
 * Invariant: the keeper is sent every ticket that the setting held while
 * messages were sent.
 */
#ifndef CFD_SESSION_TICKET_H
#define CFD_SESSION_TICKET_H

#include "postgres.h"
#include "lib/stringinfo.h"

extern void cfd_ticket_init(void);
extern bool cfd_has_ticket(void);
/*
 * Builds the message body. Returns false outside a transaction, where the
 * database's name cannot be looked up.
 */
extern bool cfd_ticket_body(StringInfo body);

#endif
