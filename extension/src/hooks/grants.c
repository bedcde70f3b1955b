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

#include "hooks/hooks.h"
#include "session/channel.h"
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
