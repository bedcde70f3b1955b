/*
 * message.c
 *	  Rows of ledger tables as messages; see ledger.h.
 *
 * NULL columns are omitted, so that columns can be added later. For every
 * other column the message has its value: the FID of a protected value, the
 * stored bytes of any other value, or their hash if they are long. Names and
 * types are told once, before the first row of the table.
 *
 * Invariants: a row version always yields the same bytes, independent of the
 * session's settings; a row is sent only to a channel that knows the table as
 * it is described now.
 */
#include "postgres.h"

#include <openssl/evp.h>

#include "access/detoast.h"
#include "access/tupmacs.h"
#include "common/sha2.h"
#include "compat/compat.h"
#include "ledger/ledger.h"
#include "mb/pg_wchar.h"
#include "session/channel.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* Values longer than this are hashed here. */
#define HASHED_BYTES 1024

static void
append_bytes(StringInfo body, const char *text, int length)
{
	char	   *utf8 = pg_server_to_any(text, length, PG_UTF8);

	appendBinaryStringInfo(body, utf8, utf8 == text ? length : strlen(utf8));
	appendStringInfoChar(body, '\0');
	if (utf8 != text)
		pfree(utf8);
}

void
cfd_ledger_append_text(StringInfo body, const char *text)
{
	append_bytes(body, text, strlen(text));
}

char *
cfd_ledger_names(Relation table, uint32 *length)
{
	const CfdDescribed *described = cfd_ledger_describe(table, table);

	*length = described->names_length;
	return memcpy(palloc(described->names_length), described->text, described->names_length);
}

/* Appends bytes for which there is room. */
static void
message_put(StringInfo body, const void *bytes, Size length)
{
	if (length > 0)
		memcpy(body->data + body->len, bytes, length);
	body->len += length;
}

/* The bytes of a plain value. `copy` provides the space for a value passed by value. */
static const char *
value_bytes(Form_pg_attribute attribute, Datum value, char *copy, Size *length)
{
	if (attribute->attbyval)
	{
		store_att_byval(copy, value, attribute->attlen);
		*length = attribute->attlen;
		return copy;
	}
	if (attribute->attlen == -1)
	{
		struct varlena *plain = PG_DETOAST_DATUM_PACKED(value);

		*length = VARSIZE_ANY_EXHDR(plain);
		return VARDATA_ANY(plain);
	}
	*length = attribute->attlen == -2 ? strlen(DatumGetCString(value)) : attribute->attlen;
	return DatumGetPointer(value);
}

/*
 * OpenSSL is asked for the algorithm once for a session: to find it takes longer than to hash a
 * value, above all after something else has used the processor.
 */
static void
hash_bytes_of(const char *bytes, Size length, uint8 *hash)
{
	static EVP_MD_CTX *context = NULL;
	const EVP_MD *algorithm = NULL;

	if (context == NULL)
	{
		algorithm = EVP_sha256();
		context = EVP_MD_CTX_new();
	}
	if (context != NULL && EVP_DigestInit_ex(context, algorithm, NULL) == 1 &&
		EVP_DigestUpdate(context, bytes, length) == 1 && EVP_DigestFinal_ex(context, hash, NULL) == 1)
		return;
	EVP_MD_CTX_free(context);
	context = NULL;
	elog(ERROR, "could not compute a hash");
}

static void
append_cell(StringInfo body, Form_pg_attribute attribute, const CfdDescribedColumn *column, Datum value)
{
	CfdWireLedgerCell cell = {.column = column->position};
	char		copy[sizeof(Datum)];
	uint8		hash[PG_SHA256_DIGEST_LENGTH];
	const char *bytes = NULL;
	Size		length = 0;

	if (column->code != 0)
		cell.fid = DatumGetUInt64(value);
	else
		bytes = value_bytes(attribute, value, copy, &length);
	if (length > HASHED_BYTES)
	{
		hash_bytes_of(bytes, length, hash);
		bytes = (const char *) hash;
		length = sizeof(hash);
		cell.hashed = 1;
	}
	cell.length = length;
	enlargeStringInfo(body, sizeof(cell) + length);
	message_put(body, &cell, sizeof(cell));
	message_put(body, bytes, length);
}

static void
append_text_at(StringInfo body, TupleTableSlot *slot, int index)
{
	text	   *value;

	if (slot->tts_isnull[index])
	{
		append_bytes(body, "", 0);
		return;
	}
	value = DatumGetTextPP(slot->tts_values[index]);
	append_bytes(body, VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
}

static bool
is_light_walk(const CfdWireLedgerRow *head)
{
	return (head->what == CFD_LEDGER_CURRENT || head->what == CFD_LEDGER_PAST) && head->number == 1;
}

/*
 * Sends a row, and before it the table if the channel does not know it. What is read is answered in
 * the same statement; what is written, at the commit.
 */
static void
send_row(CfdWireLedgerRow *head, CfdDescribed *described, const StringInfoData *body)
{
	bool		read = head->what == CFD_LEDGER_CURRENT || head->what == CFD_LEDGER_PAST ||
		head->what == CFD_LEDGER_SHOWN;
	void		(*send) (uint16, const void *, uint32, const void *, uint64) = read ? cfd_send : cfd_send_deferred;
	CfdWireLedgerTable table = {.place = described->place};

	/* The channel may be another one than before from here on. */
	cfd_begin();
	if (described->generation != cfd_channel.generation)
	{
		send(CFD_KIND_LEDGER_TABLE, &table, sizeof(table), described->text, described->length);
		described->generation = cfd_channel.generation;
	}
	head->place = described->place;
	send(CFD_KIND_LEDGER_ROW, head, sizeof(*head), body->data, body->len);
	if (!read)
		cfd_ledger_row_sent();
}

/*
 * Sends a row version. `relation` is the relation that contains it: the table
 * or its history. The head has the log and the operation's number.
 */
void
cfd_ledger_send(Relation table, Relation relation, TupleTableSlot *slot, CfdWireLedgerRow *head)
{
	static MemoryContext context = NULL;
	CfdLedgerPlaces at = cfd_columns(relation)->ledger;
	TupleDesc	desc = RelationGetDescr(relation);
	CfdDescribed *described;
	MemoryContext old;
	StringInfoData body;

	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "confide ledger row", ALLOCSET_DEFAULT_SIZES);
	slot_getallattrs(slot);
	described = cfd_ledger_describe(table, relation);
	old = MemoryContextSwitchTo(context);
	initStringInfo(&body);
	head->sn = slot->tts_isnull[at.sn] ? 0 : DatumGetInt64(slot->tts_values[at.sn]);
	head->time = slot->tts_isnull[at.valid_from] ? 0 : DatumGetTimestampTz(slot->tts_values[at.valid_from]);
	append_text_at(&body, slot, at.by);
	if (at.role == CFD_LEDGER_HISTORY)
	{
		head->until = slot->tts_isnull[at.valid_to] ? 0 : DatumGetTimestampTz(slot->tts_values[at.valid_to]);
		append_text_at(&body, slot, at.ended_by);
	}
	else
		cfd_ledger_append_text(&body, "");
	/* A walk that need not compare columns does not need them. */
	for (int i = 0; i < desc->natts && !is_light_walk(head); i++)
	{
		if (!slot->tts_isnull[i] && described->column[i].position >= 0)
			append_cell(&body, TupleDescAttr(desc, i), &described->column[i], slot->tts_values[i]);
	}
	send_row(head, described, &body);
	MemoryContextSwitchTo(old);
	MemoryContextReset(context);
}

void
cfd_ledger_send_end(Relation table, CfdWireLedgerRow *head)
{
	CfdDescribed *described;
	StringInfoData body;

	described = cfd_ledger_describe(table, table);
	initStringInfo(&body);
	cfd_ledger_append_text(&body, cfd_ledger_principal());
	cfd_ledger_append_text(&body, "");
	send_row(head, described, &body);
	pfree(body.data);
}
