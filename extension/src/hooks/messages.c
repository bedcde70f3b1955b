/*
 * messages.c
 *	  Puts whole envelopes into the details of errors; see value/cut.h.
 *
 * PostgreSQL calls the hook for what it logs, so with log_min_messages above
 * error envelopes remain cut, and the proxy shows that there is a value.
 *
 * Invariant: as in hooks.h.
 */
#include "postgres.h"

#include "hooks/hooks.h"
#include "utils/elog.h"
#include "value/cut.h"

static emit_log_hook_type previous_log = NULL;

static void
log_message(ErrorData *message)
{
	if (message->output_to_client && message->detail != NULL)
	{
		MemoryContext before = MemoryContextSwitchTo(message->assoc_context);

		message->detail = cfd_cut_restore(message->detail);
		MemoryContextSwitchTo(before);
	}
	if (previous_log)
		previous_log(message);
}

void
cfd_messages_init(void)
{
	previous_log = emit_log_hook;
	emit_log_hook = log_message;
}
