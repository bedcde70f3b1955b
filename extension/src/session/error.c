/*
 * error.c
 *	  Raises the keeper's errors: see error.h.
 *
 * The keeper's texts are UTF-8 and never contain a value. What is no valid text
 * is cut down to ASCII; what is no error code becomes an internal error.
 *
 * Invariant: the error level is ERROR, always.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "session/channel.h"
#include "session/error.h"
#include "session/pins.h"
#include "mb/pg_wchar.h"

/* The keeper's message when an operation needs a client and there is none. */
#define NO_CLIENT "confide: no client session"
/* ... and when a permanent FID names nothing. */
#define UNRESOLVED "confide: identifier does not resolve"

/* The next zero-terminated text of the body, in the server's encoding, or "". */
static char *
next_text(const char **at, const char *end)
{
	const char *start = *at;
	const char *zero = start < end ? memchr(start, 0, end - start) : NULL;
	int			length = (zero != NULL ? zero : end) - start;
	char	   *text = pnstrdup(start, length);

	*at = zero != NULL ? zero + 1 : end;
	if (!pg_verify_mbstr(PG_UTF8, text, length, true))
	{
		for (char *c = text; *c != '\0'; c++)
			if (IS_HIGHBIT_SET(*c))
				*c = '?';
	}
	return pg_any_to_server(text, length, PG_UTF8);
}

static int
error_code(const char *state)
{
	for (int i = 0; i < 5; i++)
	{
		if (!(state[i] >= '0' && state[i] <= '9') && !(state[i] >= 'A' && state[i] <= 'Z'))
			return ERRCODE_INTERNAL_ERROR;
	}
	/* Classes of success, warnings and "no data" are no errors. */
	if (state[0] == '0' && state[1] <= '2')
		return ERRCODE_INTERNAL_ERROR;
	return MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4]);
}

/*
 * At a standby a held cursor may name values whose sweep has been replayed since. As
 * with PostgreSQL's own conflicts with recovery, the query can be run again.
 */
static void
removed_by_recovery(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("a value that is asked for was removed by recovery"),
			 errdetail("A cursor WITH HOLD at a standby does not keep values of rows that the primary has deleted."),
			 errhint("Run the query again; read it to its end in one transaction, or at the primary.")));
}

void
cfd_raise_error(const char *body, uint32 length)
{
	const char *at = body + CFD_FIXED_ERROR;
	const char *end = body + length;
	char	   *message;
	char	   *detail;
	char	   *hint;
	int			code;

	if (length < CFD_FIXED_ERROR)
		cfd_violation("error without a code");
	code = error_code(body);
	message = next_text(&at, end);
	detail = next_text(&at, end);
	hint = next_text(&at, end);
	if (code == ERRCODE_INSUFFICIENT_PRIVILEGE && cfd_channel.lost_client &&
		strcmp(message, NO_CLIENT) == 0)
	{
		code = ERRCODE_CONNECTION_DOES_NOT_EXIST;
		hint = "The keeper was restarted; shake hands again.";
	}
	if (code == ERRCODE_DATA_CORRUPTED && strcmp(message, UNRESOLVED) == 0 &&
		cfd_is_holder() && RecoveryInProgress())
		removed_by_recovery();
	ereport(ERROR,
			(errcode(code),
			 errmsg_internal("%s", message[0] != '\0' ? message : "Confide's keeper reports an error"),
			 detail[0] != '\0' ? errdetail_internal("%s", detail) : 0,
			 hint[0] != '\0' ? errhint("%s", hint) : 0));
	pg_unreachable();
}
