/*
 * ticket.c
 *	  The setting confide.restore_ticket; see ticket.h.
 *
 * The keeper counts a ticket once per session, however often it is sent.
 *
 * Invariant: as in ticket.h.
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "session/channel.h"
#include "session/ticket.h"
#include "utils/guc.h"

static char *ticket = NULL;

static void
changes(const char *value, void *extra)
{
	(void) extra;
	if (ticket == NULL || value == NULL || strcmp(ticket, value) != 0)
		cfd_channel.ticket_told = false;
}

bool
cfd_has_ticket(void)
{
	return ticket != NULL && ticket[0] != '\0';
}

bool
cfd_ticket_body(StringInfo body)
{
	char	   *database;

	if (!IsTransactionState() || !OidIsValid(MyDatabaseId))
		return false;
	database = get_database_name(MyDatabaseId);
	if (database == NULL)
		return false;
	initStringInfo(body);
	appendBinaryStringInfo(body, database, strlen(database) + 1);
	appendStringInfoString(body, ticket != NULL ? ticket : "");
	return true;
}

void
cfd_ticket_init(void)
{
	DefineCustomStringVariable("confide.restore_ticket",
							   "Lets this session take in values of a dump.",
							   "What \"confide restore-ticket\" prints.",
							   &ticket,
							   "",
							   PGC_USERSET,
							   GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE,
							   NULL, changes, NULL);
}
