/*
 * grants.c
 *	  Passes the grants of a client's statement to the keeper. A grant
 *	  states what the statement may do. It is appended to the statement's
 *	  text in a comment that the client has sealed (docs/security.md).
 *
 * The keeper rejects comments that hold no grant of this session.
 *
 * Invariant: anything that is not at the very end of the text, in the form
 * that clients use, is an ordinary comment.
 */
#include "postgres.h"

#include <ctype.h>

#include "access/xlog.h"
#include "fmgr.h"
#include "hooks/hooks.h"
#include "schema/schema.h"
#include "session/channel.h"
#include "session/gate.h"
#include "utils/builtins.h"
#include "value/base64.h"
#include "wal/policy.h"

#define BEGIN "\n/*confide:cfd1."
#define BEGIN_LENGTH (sizeof(BEGIN) - 1)
#define END_LENGTH 2

/* Start of the envelope of a grant that ends the text, or NULL. */
static const char *
find_grant(const char *text, size_t length)
{
	size_t		at = length - END_LENGTH;

	if (length < BEGIN_LENGTH + END_LENGTH || memcmp(text + at, "*/", END_LENGTH) != 0)
		return NULL;
	while (at > 0 && (isalnum((unsigned char) text[at - 1]) || text[at - 1] == '-' || text[at - 1] == '_'))
		at--;
	if (at < BEGIN_LENGTH || memcmp(text + at - BEGIN_LENGTH, BEGIN, BEGIN_LENGTH) != 0)
		return NULL;
	return text + at;
}

/*
 * Whether grants were sent that may hold for good: those of definitions, and
 * of columns that belong to who creates them.
 */
static bool unlogged = false;

/*
 * To be called when a definition is made: other keepers of the store learn
 * from the WAL what its client has authorised.
 */
void
cfd_log_grants(void)
{
	if (!unlogged)
		return;
	cfd_log_policies();
	unlogged = false;
}

/* A keeper that follows takes no definitions. Right after a promotion it still does. */
static void
await_promotion(void)
{
	if (!RecoveryInProgress())
		cfd_state_need_fids();
}

void
cfd_take_grants(const char *text)
{
	size_t		length = cfd_owner_text(text);
	const char *grant;

	while ((grant = find_grant(text, length)) != NULL)
	{
		size_t		letters = text + length - END_LENGTH - grant;
		unsigned char *bytes = palloc(CFD_BASE64_BYTES(letters) + 1);

		if (cfd_base64_decode(bytes, grant, letters))
		{
			cfd_begin();
			await_promotion();
			cfd_send(CFD_KIND_GRANT, NULL, 0, bytes, CFD_BASE64_BYTES(letters));
			unlogged = true;
		}
		pfree(bytes);
		length = grant - text - BEGIN_LENGTH;
	}
}

#define PREFIX "cfd1."

/*
 * Passes on a client's sealed command about who may see a column. The keeper
 * decides whether the client may give it.
 */
PG_FUNCTION_INFO_V1(cfd_policy);
Datum
cfd_policy(PG_FUNCTION_ARGS)
{
	char	   *command = PG_ARGISNULL(0) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(0));
	size_t		letters;
	unsigned char *bytes;
	uint32		length;

	if (strncmp(command, PREFIX, strlen(PREFIX)) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("this is no command of a client"),
				 errhint("Say GRANT VIEWER ON schema.table.column TO principal through the Confide proxy.")));
	command += strlen(PREFIX);
	letters = strlen(command);
	bytes = palloc(CFD_BASE64_BYTES(letters) + 1);
	if (!cfd_base64_decode(bytes, command, letters))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("this is no command of a client")));
	await_promotion();
	cfd_call(CFD_KIND_POLICY, NULL, 0, bytes, CFD_BASE64_BYTES(letters), &length);
	cfd_log_policies();
	PG_RETURN_VOID();
}

/* The proxy calls it with the number of entries that it has granted. */
PG_FUNCTION_INFO_V1(cfd_authorised);
Datum
cfd_authorised(PG_FUNCTION_ARGS)
{
	cfd_log_grants();
	PG_RETURN_INT32(PG_GETARG_INT32(0));
}

PG_FUNCTION_INFO_V1(cfd_authorise_without_proxy);

/*
 * confide.authorise(text). The proxy rewrites this call, since only a client
 * can authorise; reaching it means that there was no proxy.
 */
Datum
cfd_authorise_without_proxy(PG_FUNCTION_ARGS)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("confide.authorise works through Confide's proxy only, as a statement of its own with one literal"),
			 errhint("Write SELECT confide.authorise('CREATE VIEW ...'), or use \"confide authorise\".")));
	PG_RETURN_NULL();
}
