/*
 * owner.c
 *	  The client of a proxy that this process serves; see schema.h.
 *
 * A pooler between the proxy and the server gives a process to one client
 * after another. The process has the first one's session with the keeper, and
 * the next one must not act in it. So a client names itself in its request
 * for reports. Until DISCARD ALL, which also ends the session with the keeper,
 * the process serves no other client. Where a pooler is known to be, every
 * text that is executed names its client, so that a process that a transaction
 * was given by mistake refuses it.
 *
 * Invariant: in a process with an owner nothing is executed that names another
 * one; if there is a pooler, nothing that names none.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "schema/schema.h"
#include "session/channel.h"
#include "tcop/pquery.h"

/* Letters of a name, and the comment at the end of a text that has it. */
#define LETTERS 32
#define BEGIN "\n/*confide:own1."
#define BEGIN_LENGTH (sizeof(BEGIN) - 1)
#define END "*/"
#define TAG_LENGTH (BEGIN_LENGTH + LETTERS + sizeof(END) - 1)

static char owner[LETTERS + 1];
/* A pooler stands between the owner and this process. */
static bool pooled = false;

static void
another_client(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("this process of the server serves another client of Confide's proxy"),
			 errdetail("A pooler between proxy and server has given the client another process: it pools transactions, or does not reset sessions."),
			 errhint("Let it pool sessions, with DISCARD ALL between two clients.")));
}

/* The name at the end of a text, or NULL. */
static const char *
name_in(const char *text)
{
	size_t		length = text != NULL ? strlen(text) : 0;
	const char *tag;

	if (length < TAG_LENGTH)
		return NULL;
	tag = text + length - TAG_LENGTH;
	if (memcmp(tag, BEGIN, BEGIN_LENGTH) != 0 || memcmp(text + length - 2, END, 2) != 0)
		return NULL;
	return tag + BEGIN_LENGTH;
}

static bool
is_owner(const char *name)
{
	return owner[0] != '\0' && memcmp(name, owner, LETTERS) == 0;
}

void
cfd_owner_asked(const char *pid, const char *name)
{
	if (pid[0] != '\0' && strtol(pid, NULL, 10) != MyProcPid)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a pooler stands between Confide's proxy and the server"),
				 errdetail("The proxy was told of another process than the one that serves it."),
				 errhint("If it pools sessions, say upstream_pooling = \"session\" in the proxy's configuration. Transactions cannot be pooled there.")));
	if (strlen(name) != LETTERS)
		return;
	if (owner[0] != '\0' && !is_owner(name))
		another_client();
	memcpy(owner, name, LETTERS);
	pooled = pid[0] == '\0';
}

size_t
cfd_owner_text(const char *text)
{
	const char *name = name_in(text);

	if (name == NULL)
		return text != NULL ? strlen(text) : 0;
	if (!is_owner(name))
		another_client();
	return name - BEGIN_LENGTH - text;
}

void
cfd_owner_executes(void)
{
	const char *name;

	/* What is deferred to the end of a transaction is executed without a portal. */
	if (likely(!pooled) || ActivePortal == NULL)
		return;
	name = name_in(ActivePortal->sourceText);
	if (name == NULL || !is_owner(name))
		another_client();
}

void
cfd_owner_discards(const char *text)
{
	const char *name = name_in(text);

	if (owner[0] == '\0' || (name != NULL && is_owner(name)))
		return;
	owner[0] = '\0';
	pooled = false;
	cfd_channel_close();
}
