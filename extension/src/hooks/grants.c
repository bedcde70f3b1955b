/*
 * grants.c
 *	  Hands the keeper what a client's statement may do: grants stand behind the text of a
 *	  statement, in comments that the client has sealed (docs/security.md).
 *
 * A comment that holds no grant of this session is the keeper's to refuse.
 *
 * Invariant: what is not at the very end of a text, in the form that clients give it, is
 * an ordinary comment.
 */
#include "postgres.h"

#include <ctype.h>

#include "fmgr.h"
#include "hooks/hooks.h"
#include "session/channel.h"
#include "utils/builtins.h"
#include "value/base64.h"

#define BEGIN "\n/*confide:cfd1."
#define BEGIN_LENGTH (sizeof(BEGIN) - 1)
#define END_LENGTH 2

/* Where the envelope of a grant begins that ends with the text; NULL if there is none. */
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

void
cfd_take_grants(const char *text)
{
	size_t		length = text != NULL ? strlen(text) : 0;
	const char *grant;

	while ((grant = find_grant(text, length)) != NULL)
	{
		size_t		letters = text + length - END_LENGTH - grant;
		unsigned char *bytes = palloc(CFD_BASE64_BYTES(letters) + 1);

		if (cfd_base64_decode(bytes, grant, letters))
		{
			cfd_begin();
			cfd_send(CFD_KIND_GRANT, NULL, 0, bytes, CFD_BASE64_BYTES(letters));
		}
		pfree(bytes);
		length = grant - text - BEGIN_LENGTH;
	}
}

#define PREFIX "cfd1."

/* What a client has sealed about who sees a column; the keeper says whether it may. */
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
	cfd_call(CFD_KIND_POLICY, NULL, 0, bytes, CFD_BASE64_BYTES(letters), &length);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(cfd_authorise_without_proxy);

/* confide.authorise(text): the proxy makes something else of it, since only a client can authorise. */
Datum
cfd_authorise_without_proxy(PG_FUNCTION_ARGS)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("confide.authorise works through Confide's proxy only, as a statement of its own with one literal"),
			 errhint("Write SELECT confide.authorise('CREATE VIEW ...'), or use \"confide authorise\".")));
	PG_RETURN_NULL();
}
