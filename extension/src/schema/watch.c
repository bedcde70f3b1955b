/*
 * watch.c
 *	  Decides what is sent to a client that watches the schema, and when;
 *	  see schema.h.
 *
 * A client starts watching by sending a Parse message (without Execute) of SET
 * confide.schema_since TO 'identity', 'version', 'pid', 'name' (see owner.c
 * for the last two). Changes after that version are sent at once. From then on the client is sent: changes of this session,
 * at the end of the statement that made them (before its CommandComplete); the
 * end of their transaction, before the client is told of it; the newest
 * version whenever another session has changed something; and whether the
 * session could be continued elsewhere (kept.c). All of these are
 * ParameterStatus messages of a setting that does not exist.
 *
 * Invariant: before a client learns that its transaction has committed, it has
 * been sent all changes of the transaction, or the information that something
 * is missing.
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/extension.h"
#include "generated/contract.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "schema/schema.h"
#include "storage/ipc.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "value/place.h"

typedef enum Watch
{
	NOBODY,						/* no client is watching */
	WITHOUT,					/* the database does not have the extension */
	WATCHED
} Watch;

static Watch watch = NOBODY;
/*
 * Newest version that the client was told, or at which the extension was found
 * missing.
 */
static uint64 told = 0;
/* Preallocated buffer for the end of a transaction. */
static StringInfoData end_message;
/* Changes of the current transaction have been sent. */
static bool open_changes = false;
/* The changes of this transaction are not known in detail; the reader must ask. */
static bool unknown_changes = false;
/* What the client was told last: the session has something that cannot be rebuilt. */
static bool told_kept = false;

static void
send(const char *text, int length)
{
	StringInfoData message;

	pq_beginmessage(&message, 'S');
	pq_sendbytes(&message, CFD_REPORT_SETTING, strlen(CFD_REPORT_SETTING) + 1);
	pq_sendbytes(&message, text, length + 1);
	pq_endmessage(&message);
}

static void
watch_begin(StringInfo out, char kind)
{
	initStringInfo(out);
	appendStringInfo(out, "1:%c", kind);
}

static void
watch_finish(StringInfo out)
{
	send(out->data, out->len);
	pfree(out->data);
}

/* Sends a part of a message, which more parts of the same kind follow. */
static void
send_part(StringInfo out)
{
	send(out->data, out->len);
	resetStringInfo(out);
	appendStringInfo(out, "1:%c", CFD_REPORT_PART);
}

static void
head(StringInfo out, char kind, uint64 from, uint64 to)
{
	watch_begin(out, kind);
	cfd_schema_number(out, cfd_schema_touched());
	cfd_schema_field(out, cfd_schema_identity());
	cfd_schema_number(out, from);
	cfd_schema_number(out, to);
}

/* Sends all of the current catalogs. */
static void
send_whole(uint64 version)
{
	StringInfoData out;

	watch_begin(&out, CFD_REPORT_PART);
	cfd_schema_define_all(&out, send_part);
	watch_finish(&out);
	head(&out, CFD_REPORT_WHOLE, 0, version);
	watch_finish(&out);
	open_changes |= cfd_schema_touched();
}

static void
send_objects(StringInfo out, const CfdObject *objects, int count)
{
	for (int i = 0; i < count; i++)
	{
		bool		exists = cfd_schema_define(out, &objects[i]);

		if (!exists)
			cfd_schema_define_gone(out, &objects[i]);
	}
	watch_finish(out);
}

/* Sends what has changed after a version. */
static void
send_since(const char *identity, uint64 since)
{
	CfdObject  *objects;
	int			count;
	uint64		version = cfd_schema_version();
	StringInfoData out;

	InvalidateCatalogSnapshot();
	told = version;
	if (!OidIsValid(get_extension_oid("confide", true)))
	{
		watch = WITHOUT;
		head(&out, CFD_REPORT_WITHOUT, 0, version);
		watch_finish(&out);
		return;
	}
	watch = WATCHED;
	if (strcmp(identity, cfd_schema_identity()) != 0 || !cfd_schema_since(since, &objects, &count))
		return send_whole(version);
	head(&out, CFD_REPORT_SINCE, since, version);
	send_objects(&out, objects, count);
	pfree(objects);
}

/* Sends what this transaction has changed since the last call. */
static void
send_own(void)
{
	StringInfoData out;
	CfdObject	object;

	if (!cfd_schema_pending())
		return;
	CommandCounterIncrement();
	InvalidateCatalogSnapshot();
	watch_begin(&out, CFD_REPORT_OWN);
	while (cfd_schema_take(&object))
	{
		bool		exists;

		if (!OidIsValid(object.class))
		{
			unknown_changes = true;
			continue;
		}
		exists = cfd_schema_define(&out, &object);
		cfd_schema_found(&object, exists);
		if (!exists)
			cfd_schema_define_gone(&out, &object);
	}
	open_changes = true;
	watch_finish(&out);
}

static void
send_path(void)
{
	StringInfoData out;

	if (cfd_schema_path_said())
		return;
	watch_begin(&out, CFD_REPORT_PATH);
	cfd_schema_path(&out);
	watch_finish(&out);
}

/* Sends the version if another session may have changed something. */
static void
send_version(void)
{
	uint64		version = cfd_schema_version();
	StringInfoData out;

	if (version == told)
		return;
	told = version;
	head(&out, CFD_REPORT_VERSION, 0, version);
	watch_finish(&out);
}

/* In a database without the extension: checks whether it has been created. */
static void
look_again(void)
{
	uint64		version = cfd_schema_version();

	if (!cfd_schema_touched() && version == told)
		return;
	if (cfd_schema_touched())
		CommandCounterIncrement();
	InvalidateCatalogSnapshot();
	told = version;
	if (!OidIsValid(get_extension_oid("confide", true)))
		return;
	watch = WATCHED;
	send_whole(version);
}

static void
report(void)
{
	if (watch == WITHOUT)
		look_again();
	if (watch != WATCHED)
		return;
	cfd_kept_look();
	send_own();
	send_path();
	send_version();
}

void
cfd_schema_report(void)
{
	if (likely(watch == NOBODY) || cfd_statement_depth > 0 || whereToSendOutput != DestRemote ||
		!IsTransactionState())
		return;
	report();
}

void
cfd_schema_before_commit(void)
{
	if (likely(watch == NOBODY) || whereToSendOutput != DestRemote || !cfd_schema_pending())
		return;
	if (watch == WITHOUT)
		look_again();
	if (watch == WATCHED)
		send_own();
}

static const char *
argument(const VariableSetStmt *set, int number)
{
	const A_Const *constant;

	if (list_length(set->args) <= number || !IsA(list_nth(set->args, number), A_Const))
		return "";
	constant = list_nth_node(A_Const, set->args, number);
	return IsA(&constant->val, String) ? constant->val.sval.sval : "";
}

void
cfd_schema_asked(const Query *query)
{
	const VariableSetStmt *set = (const VariableSetStmt *) query->utilityStmt;

	if (query->commandType != CMD_UTILITY || !IsA(set, VariableSetStmt) || set->name == NULL ||
		strcmp(set->name, CFD_REPORT_REQUEST) != 0 || cfd_statement_depth > 0 ||
		whereToSendOutput != DestRemote)
		return;
	if (end_message.data == NULL)
	{
		MemoryContext context = MemoryContextSwitchTo(TopMemoryContext);

		initStringInfo(&end_message);
		MemoryContextSwitchTo(context);
	}
	cfd_owner_asked(argument(set, 2), argument(set, 3));
	cfd_kept_follow();
	told_kept = false;
	send_own();
	send_since(argument(set, 0), strtou64(argument(set, 1), NULL, 10));
	cfd_schema_path_forget();
	send_path();
}

/* Must not fail: the buffer exists and is large enough. */
static void
send_end(char kind, uint64 version)
{
	pq_beginmessage_reuse(&end_message, 'S');
	pq_sendbytes(&end_message, CFD_REPORT_SETTING, strlen(CFD_REPORT_SETTING) + 1);
	appendStringInfo(&end_message, "1:%c", kind);
	cfd_schema_number(&end_message, version);
	pq_sendbyte(&end_message, 0);
	pq_endmessage_reuse(&end_message);
}

/* Must not fail, like send_end. */
static void
send_kept(void)
{
	bool		kept = cfd_kept_anything();

	if (kept != told_kept)
		send_end(CFD_REPORT_KEPT, kept);
	told_kept = kept;
}

void
cfd_schema_ended(bool commit)
{
	bool		missing = cfd_schema_pending() || unknown_changes;
	uint64		version = cfd_schema_end(commit);

	/*
	 * Names of schemas may be what they were before.  Settings and the order
	 * of schemas are compared with the last report.
	 */
	if (!commit || missing || open_changes || version != 0)
		cfd_schema_path_forget();
	if (watch == WATCHED && whereToSendOutput == DestRemote && !proc_exit_inprogress)
		send_kept();
	if (watch == WATCHED && whereToSendOutput == DestRemote && !proc_exit_inprogress &&
		(open_changes || version != 0))
	{
		if (version == 0)
			send_end(CFD_REPORT_UNDONE, 0);
		else
			send_end(missing ? CFD_REPORT_DONE_MORE : CFD_REPORT_DONE, version);
		if (version != 0)
			told = version;
	}
	open_changes = false;
	unknown_changes = false;
}
