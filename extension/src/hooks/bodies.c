/*
 * bodies.c
 *	  Constants in bodies of routines that are strings. The client seals them
 *	  for its session; here they become envelopes of constants of the catalog,
 *	  as pg_get_expr prints those of a default, which the keeper opens in every
 *	  client's session.
 *
 * An envelope is found in the text by its form: a string with the prefix of
 * envelopes and nothing else, and a cast to a protected type after it. Whatever
 * looks otherwise stays as it is. An envelope that the keeper has made before,
 * for a dump, is replaced as well, since it names the database it is from.
 *
 * Does not: look at bodies that the server keeps parsed; what they contain is
 * read by the types' input functions.
 *
 * Invariant: the statement given by the caller is not changed.
 */
#include "postgres.h"

#include "fmgr.h"
#include "hooks/hooks.h"
#include "lib/stringinfo.h"
#include "nodes/value.h"
#include "session/channel.h"
#include "utils/lsyscache.h"
#include "value/base64.h"
#include "value/place.h"
#include "value/types.h"

#define OPENING "'" CFD_ENVELOPE_PREFIX
#define CAST "::pg_catalog."

/* An envelope in a text. */
typedef struct Found
{
	const char *start;			/* its opening quote */
	const char *end;			/* behind its closing quote */
	uint8		type;
} Found;

/* The protected type with this name; 0 if there is none. */
static uint8
bodies_type(const char *name)
{
	size_t		length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

	for (int code = 1; code <= CFD_TYPE_MAX; code++)
	{
		const char *known = OidIsValid(cfd_type_oid(code)) ? cfd_type_name(code) : "";

		if (strlen(known) == length && length > 0 && strncmp(known, name, length) == 0)
			return code;
	}
	return 0;
}

/* Finds the first envelope of a text. */
static bool
find_envelope(const char *text, Found *found)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	const char *at = text;

	while ((at = strstr(at, OPENING)) != NULL)
	{
		const char *end = at + strlen(OPENING);

		found->start = at;
		end += strspn(end, letters);
		at = end;
		if (strncmp(end, "'" CAST, strlen("'" CAST)) != 0)
			continue;
		found->end = end + 1;
		found->type = bodies_type(end + strlen("'" CAST));
		if (found->type != 0)
			return true;
	}
	return false;
}

/* Appends the envelope of the catalog's constant with this value. */
static void
append_constant(StringInfo out, CfdFid fid, uint8 type)
{
	CfdWireGetEnvelopes body = {0};
	CfdWireWanted wanted = {.fid = fid,.t = type,.form = CFD_DELIVERY_CONSTANT};
	CfdReadGetEnvelopesAnswer read;
	CfdReadSealed sealed = {0};
	const char *answer;
	uint32		length;
	size_t		letters;

	answer = cfd_call(CFD_KIND_GET_ENVELOPES, &body, sizeof(body), &wanted, sizeof(wanted), &length);
	if (length > 0)
	{
		CFD_DECODE(get_envelopes_answer, answer, length, &read);
		if (!cfd_read_sealed(&read.envelopes, &sealed))
			sealed.envelope_length = 0;
	}
	if (sealed.envelope_length == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("a constant of type %s cannot be kept in the body of a routine", cfd_type_name(type)),
				 errhint("Create the routine through Confide's proxy.")));
	letters = CFD_BASE64_LENGTH((size_t) sealed.envelope_length);
	appendStringInfoString(out, OPENING);
	enlargeStringInfo(out, letters);
	cfd_base64_encode(out->data + out->len, (const unsigned char *) sealed.envelope, sealed.envelope_length);
	out->len += letters;
	out->data[out->len] = '\0';
	appendStringInfoChar(out, '\'');
}

/* The text with its envelopes replaced. */
static char *
replace_envelopes(const char *text)
{
	StringInfoData out;
	Found		found;

	initStringInfo(&out);
	while (find_envelope(text, &found))
	{
		char	   *envelope = pnstrdup(found.start + 1, found.end - found.start - 2);
		Oid			input;
		Oid			param;
		Datum		fid;

		appendBinaryStringInfo(&out, text, found.start - text);
		getTypeInputInfo(cfd_type_oid(found.type), &input, &param);
		/* The first call of a function in this mode gives a constant of the catalog. */
		fid = OidInputFunctionCall(input, envelope, param, -1);
		append_constant(&out, DatumGetUInt64(fid), found.type);
		pfree(envelope);
		text = found.end;
	}
	appendStringInfoString(&out, text);
	return out.data;
}

/* The strings of a routine's body. */
static List *
body_strings(const CreateFunctionStmt *create)
{
	ListCell   *cell;

	foreach(cell, create->options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);

		if (strcmp(option->defname, "as") == 0 && option->arg != NULL && IsA(option->arg, List))
			return (List *) option->arg;
	}
	return NIL;
}

PlannedStmt *
cfd_bodies_adapt(PlannedStmt *statement)
{
	const CreateFunctionStmt *create = (const CreateFunctionStmt *) statement->utilityStmt;
	bool		concerned = false;
	ListCell   *cell;
	Found		found;

	if (create == NULL || !IsA(create, CreateFunctionStmt) || !OidIsValid(cfd_access_method()))
		return statement;
	foreach(cell, body_strings(create))
		concerned = concerned || find_envelope(strVal(lfirst(cell)), &found);
	if (!concerned)
		return statement;
	Assert(cfd_mode == CFD_MODE_CATALOG);
	statement = copyObject(statement);
	foreach(cell, body_strings((CreateFunctionStmt *) statement->utilityStmt))
		lfirst(cell) = makeString(replace_envelopes(strVal(lfirst(cell))));
	return statement;
}
