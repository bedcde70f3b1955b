/*
 * told.c
 *	  What the keeper is told of a session before the next request, where it
 *	  has changed: settings, ticket, time, statement; see told.h.
 *
 * Invariant: nothing here waits for an answer.
 */
#include "postgres.h"

#include "access/xact.h"
#include "session/answers.h"
#include "session/channel.h"
#include "session/ticket.h"
#include "session/told.h"
#include "utils/guc.h"
#include "utils/plancache.h"
#include "utils/timestamp.h"

void
cfd_tell_settings(void)
{
	StringInfoData body;
	static const char *const names[] = {"TimeZone", "DateStyle", "IntervalStyle", "extra_float_digits",
	"bytea_output"};

	initStringInfo(&body);
	for (int i = 0; i < lengthof(names); i++)
	{
		const char *value = GetConfigOption(names[i], false, false);

		appendBinaryStringInfo(&body, names[i], strlen(names[i]) + 1);
		appendBinaryStringInfo(&body, value, strlen(value) + 1);
	}
	cfd_write_prepared(CFD_KIND_SETTINGS, NULL, 0, body.data, body.len, false);
	pfree(body.data);
	ch.settings.timezone = session_timezone;
	ch.settings.date_style = DateStyle;
	ch.settings.date_order = DateOrder;
	ch.settings.interval_style = IntervalStyle;
	ch.settings.extra_float_digits = extra_float_digits;
	ch.settings.bytea_output = bytea_output;
}

void
cfd_tell_ticket(void)
{
	StringInfoData body;

	if (!cfd_ticket_body(&body))
		return;
	cfd_write_prepared(CFD_KIND_RESTORE_TICKET, NULL, 0, body.data, body.len, false);
	pfree(body.data);
	ch.ticket_told = true;
}

/*
 * Sends the transaction's start time. Outside a transaction, as in a
 * background worker, there is none.
 */
void
cfd_tell_clock(void)
{
	CfdWireClock body;

	if (!IsTransactionState())
		return;
	body.now = GetCurrentTransactionStartTimestamp();
	cfd_write_prepared(CFD_KIND_CLOCK, &body, sizeof(body), NULL, 0, false);
	ch.clock_told = true;
}

/*
 * When a recording, or another file of it, has begun, the constants of plans
 * that are kept are not in it: those plans are made again. If the recording is
 * of some statements only, the keeper is told which one the messages are of.
 */
void
cfd_channel_watch(void)
{
	uint64		watched;

	if (!ch.connected)
		return;
	watched = *(volatile uint64 *) (ch.link.base + CFD_WATCH_OFFSET);
	if (watched == ch.watched)
		return;
	ch.watched = watched;
	ch.query_told = !ch.query;	/* another one, so that it is told */
	if (watched != 0 && cfd_fid_slot(ch.next[CFD_PLAN]) > 0)
		ResetPlanCache();
}

void
cfd_tell_statement(void)
{
	CfdWireStatement body = {.query = ch.query};

	cfd_channel_watch();
	if ((ch.watched & CFD_WATCH_STATEMENTS) == 0 || ch.query == ch.query_told)
		return;
	cfd_write_prepared(CFD_KIND_STATEMENT, &body, sizeof(body), NULL, 0, false);
	ch.query_told = ch.query;
}
