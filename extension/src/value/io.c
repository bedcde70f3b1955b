/*
 * io.c
 *	  Input and output of protected types (io.h), and the choice of the
 *	  arena for a new temporary value (place.h).
 *
 * Input numbers a slot and sends the envelope to be stored there, without
 * waiting. Output waits for an envelope.
 *
 * Literals are read, and constant expressions are folded, by a call through a
 * fresh FmgrInfo. Code that processes rows calls many times through the same
 * FmgrInfo. Hence the first call through an FmgrInfo may produce a value that
 * is kept, and later calls do not. At worst, the first call for a row leaves
 * one value per plan node in the plan arena (or one orphaned constant).
 *
 * Invariants: plaintext is rejected and never repeated in the error; as in
 * place.h.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "known/known.h"
#include "session/channel.h"
#include "lib/stringinfo.h"
#include "libpq/pqformat.h"
#include "nodes/primnodes.h"
#include "utils/builtins.h"
#include "value/promote.h"
#include "value/base64.h"
#include "value/batch.h"
#include "value/cut.h"
#include "value/io.h"
#include "value/place.h"
#include "value/sealed.h"
#include "value/shown.h"
#include "value/types.h"

#define PREFIX_LENGTH (sizeof(CFD_ENVELOPE_PREFIX) - 1)
#define STACK_BYTES 1024
/* Stands in a message for a value that the client's statement does not quote. */
#define NOT_QUOTED "(not shown)"
/* Length of a reference to a value of a batch, in binary format. */
#define REFERENCE_BYTES (1 + sizeof(uint32))

/* ---------- places ---------- */

CfdMode		cfd_mode = CFD_MODE_QUERY;
int			cfd_statement_depth = 0;

static char called;

bool
cfd_is_mark(const void *extra)
{
	return extra == &called;
}

void
cfd_mark_called(FmgrInfo *flinfo)
{
	if (flinfo != NULL)
		flinfo->fn_extra = &called;
}

CfdPlace
cfd_place_input(FmgrInfo *flinfo, uint8 origin, uint8 flags)
{
	bool		first = cfd_first_call(flinfo);

	if (cfd_mode == CFD_MODE_CATALOG && first)
		return CFD_PLACE_PERMANENT;
	if ((origin == CFD_ORIGIN_CLIENT && (flags & CFD_ENVELOPE_FLAG_HANDLE) != 0) || cfd_mode == CFD_MODE_PREPARE)
		return CFD_PLACE_PLAN;
	if (first && (cfd_mode == CFD_MODE_COPY || origin == CFD_ORIGIN_EXPORT))
		return CFD_PLACE_PLAN;
	return CFD_PLACE_STATEMENT;
}

/* Whether the call may be folding a constant expression. */
static bool
arguments_constant(const FmgrInfo *flinfo)
{
	List	   *args;
	ListCell   *cell;

	if (flinfo == NULL || flinfo->fn_expr == NULL)
		return false;
	if (IsA(flinfo->fn_expr, FuncExpr))
		args = ((FuncExpr *) flinfo->fn_expr)->args;
	else if (IsA(flinfo->fn_expr, OpExpr))
		args = ((OpExpr *) flinfo->fn_expr)->args;
	else
		return false;
	foreach(cell, args)
	{
		if (!IsA(lfirst(cell), Const))
			return false;
	}
	return true;
}

CfdPlace
cfd_place_result(FmgrInfo *flinfo, const CfdFid *operands, int count)
{
	if (flinfo == NULL)
		return CFD_PLACE_STATEMENT;
	/*
	 * A value that DDL computes from rows is not a constant; the keeper would
	 * refuse to keep it.
	 */
	if (!arguments_constant(flinfo))
		return CFD_PLACE_STATEMENT;
	if (cfd_mode == CFD_MODE_CATALOG)
		return CFD_PLACE_PERMANENT;
	for (int i = 0; i < count; i++)
	{
		if (cfd_fid_is_temporary(operands[i]) &&
			cfd_fid_partition(operands[i]) == cfd_fid_partition(cfd_channel.next[CFD_STATEMENT]))
			return CFD_PLACE_STATEMENT;
	}
	return CFD_PLACE_PLAN;
}

/* ---------- input ---------- */

static void
refuse_plaintext(uint8 type)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("plaintext where an envelope is expected for type %s", cfd_type_name(type)),
			 errdetail("Values of protected types reach the database sealed; this one was not, and is not shown here."),
			 errhint("Connect through Confide's proxy, which seals values."),
	/* Neither statement nor context may carry the plaintext into the log. */
			 errhidestmt(true),
			 errhidecontext(true)));
}

static void
refuse_envelope(uint8 type, int code)
{
	ereport(ERROR,
			(errcode(code),
			 errmsg("malformed envelope for type %s", cfd_type_name(type)),
			 errhint("Envelopes must be passed on unchanged.")));
}

static bool
well_formed(const unsigned char *envelope, size_t length)
{
	size_t		least = CFD_ENVELOPE_HEADER_BYTES + CFD_ENVELOPE_NONCE_BYTES + CFD_ENVELOPE_TAG_BYTES;

	if (length < least || envelope[0] != CFD_ENVELOPE_MAGIC)
		return false;
	switch (envelope[1])
	{
		case CFD_ORIGIN_CLIENT:
			if (cfd_is_fitted(envelope))
				return length >= least + CFD_ENVELOPE_TARGET_BYTES;
			return length >= least + ((envelope[3] & CFD_ENVELOPE_FLAG_BATCH) != 0 ? CFD_ENVELOPE_COUNT_BYTES : 0);
		case CFD_ORIGIN_KEEPER:
			return true;
		case CFD_ORIGIN_EXPORT:
			return length >= least + CFD_ENVELOPE_EPOCH_BYTES;
		default:
			return false;
	}
}

/*
 * A value that fits a column is in order: an error would be that of whoever uses
 * it. So no statement waits for it.
 */
static void
send_fitted(const CfdWirePutEnvelope *body, const unsigned char *envelope, size_t length, CfdPlace place)
{
	bool		outstanding = cfd_channel.outstanding;

	cfd_send(CFD_KIND_PUT_ENVELOPE, body, sizeof(*body), envelope, length);
	cfd_channel.outstanding = outstanding;
	cfd_channel.unasked = true;
	if (envelope[2] == body->t && place != CFD_PLACE_PERMANENT)
		cfd_sealed_remember(cfd_place_arena(place), body->fid, envelope, length);
}

/* Has the keeper store an envelope in a new slot. */
static CfdFid
put_envelope(const unsigned char *envelope, size_t length, uint8 type, int32 typmod, CfdPlace place)
{
	CfdWirePutEnvelope body = {.typmod = typmod,.t = type};
	CfdFid		fid;

	cfd_begin();
	fid = cfd_new_slot(cfd_place_arena(place));
	body.fid = fid;
	if (cfd_is_fitted(envelope))
		send_fitted(&body, envelope, length, place);
	else
		cfd_send(CFD_KIND_PUT_ENVELOPE, &body, sizeof(body), envelope, length);
	if (place == CFD_PLACE_PERMANENT)
		fid = cfd_make_constant(fid, type);
	else
		cfd_after_operation();
	return fid;
}

/*
 * During COPY FROM, the client sends values that the type will reject as
 * single envelopes. Waiting here raises the error where COPY can report line
 * and column.
 */
static void
raise_at_once(const unsigned char *envelope)
{
	if (cfd_mode == CFD_MODE_COPY && envelope[1] == CFD_ORIGIN_CLIENT)
		cfd_fence();
}

static CfdFid
take_envelope(FmgrInfo *flinfo, const unsigned char *envelope, size_t length, uint8 type, int32 typmod)
{
	CfdPlace	place = cfd_place_input(flinfo, envelope[1], envelope[3]);
	CfdFid		fid;

	if (cfd_is_batch(envelope))
		return cfd_take_batch(flinfo, envelope, length, type, typmod);
	if (!cfd_first_call(flinfo))
	{
		fid = put_envelope(envelope, length, type, typmod, place);
		raise_at_once(envelope);
		return fid;
	}
	/* This may be a literal: an equal one must yield the same FID. */
	cfd_begin();
	cfd_mark_called(flinfo);
	fid = cfd_known_find_input(type, typmod, place, envelope, length);
	cfd_channel.kept_constants |= envelope[1] == CFD_ORIGIN_EXPORT;
	if (fid == 0)
	{
		fid = put_envelope(envelope, length, type, typmod, place);
		raise_at_once(envelope);
		cfd_known_put_input(type, typmod, place, envelope, length, fid);
	}
	return fid;
}

/* FID of the value that a text refers to; 0 if it is not a reference. */
static CfdFid
of_reference(FmgrInfo *flinfo, const char *text, uint8 type)
{
	uint32		number = 0;
	const char *digit = text + 1;

	if (text[0] != CFD_ENVELOPE_REFERENCE || *digit == '\0')
		return 0;
	for (; *digit >= '0' && *digit <= '9' && number < CFD_BATCH_MAX; digit++)
		number = number * 10 + (*digit - '0');
	return *digit == '\0' ? cfd_of_batch(flinfo, number, type) : 0;
}

Datum
cfd_type_in(FunctionCallInfo fcinfo, uint8 type)
{
	const char *text = PG_GETARG_CSTRING(0);
	int32		typmod = PG_GETARG_INT32(2);
	unsigned char stack[STACK_BYTES];
	unsigned char *envelope = stack;
	size_t		length;
	size_t		bytes;
	CfdFid		fid;

	fid = of_reference(fcinfo->flinfo, text, type);
	if (fid != 0)
		return UInt64GetDatum(fid);
	if (strncmp(text, CFD_ENVELOPE_PREFIX, PREFIX_LENGTH) != 0)
		refuse_plaintext(type);
	text += PREFIX_LENGTH;
	length = strlen(text);
	bytes = CFD_BASE64_BYTES(length);
	if (bytes > CFD_MESSAGE_BODY_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("envelope for type %s is too long", cfd_type_name(type))));
	if (bytes > sizeof(stack))
		envelope = palloc(bytes);
	if (!cfd_base64_decode(envelope, text, length) || !well_formed(envelope, bytes))
		refuse_envelope(type, ERRCODE_INVALID_TEXT_REPRESENTATION);
	fid = take_envelope(fcinfo->flinfo, envelope, bytes, type, typmod);
	if (fid == 0)
		refuse_envelope(type, ERRCODE_INVALID_TEXT_REPRESENTATION);
	if (envelope != stack)
		pfree(envelope);
	return UInt64GetDatum(fid);
}

Datum
cfd_type_recv(FunctionCallInfo fcinfo, uint8 type)
{
	StringInfo	buffer = (StringInfo) PG_GETARG_POINTER(0);
	int32		typmod = PG_GETARG_INT32(2);
	int			bytes = buffer->len - buffer->cursor;
	const unsigned char *envelope = (const unsigned char *) pq_getmsgbytes(buffer, bytes);
	CfdFid		fid;

	if (bytes == REFERENCE_BYTES && envelope[0] == CFD_ENVELOPE_REFERENCE)
	{
		fid = cfd_of_batch(fcinfo->flinfo, cfd_get32(envelope + sizeof(uint8)), type);
		if (fid != 0)
			return UInt64GetDatum(fid);
	}
	if (bytes == 0 || envelope[0] != CFD_ENVELOPE_MAGIC)
		refuse_plaintext(type);
	if (!well_formed(envelope, bytes))
		refuse_envelope(type, ERRCODE_INVALID_BINARY_REPRESENTATION);
	fid = take_envelope(fcinfo->flinfo, envelope, bytes, type, typmod);
	if (fid == 0)
		refuse_envelope(type, ERRCODE_INVALID_BINARY_REPRESENTATION);
	return UInt64GetDatum(fid);
}

/* ---------- output ---------- */

static const char *
get_envelope(CfdFid fid, uint8 type, uint32 *length)
{
	CfdWireGetEnvelope body = {.fid = fid,.t = type};
	const char *envelope;

	if (cfd_known_find_envelope(type, fid, &envelope, length))
		return envelope;
	envelope = cfd_call(CFD_KIND_GET_ENVELOPE, &body, sizeof(body), NULL, 0, length);
	/* Not NULL for the database, but NULL for the keeper: the FID was forged. */
	if (unlikely(*length == 0))
		cfd_invalid_fid();
	return envelope;
}

/*
 * The envelope for a message, which the proxy opens wherever the message is
 * shown. NULL: the client's statement permits none, and the message itself is
 * more important than an error about that.
 */
static const char *
get_quoted(CfdFid fid, uint8 type, uint32 *length)
{
	CfdWireGetEnvelopes body = {0};
	CfdWireWanted wanted = {.fid = fid,.t = type,.form = CFD_DELIVERY_QUOTED};
	CfdReadGetEnvelopesAnswer read;
	CfdReadSealed sealed = {0};
	const char *answer;

	answer = cfd_call(CFD_KIND_GET_ENVELOPES, &body, sizeof(body), &wanted, sizeof(wanted), length);
	if (*length == 0)
		return NULL;
	CFD_DECODE(get_envelopes_answer, answer, *length, &read);
	if (!cfd_read_sealed(&read.envelopes, &sealed) || sealed.envelope_length == 0)
		return NULL;
	*length = sealed.envelope_length;
	return (const char *) sealed.envelope;
}

Datum
cfd_type_out(FunctionCallInfo fcinfo, uint8 type)
{
	CfdFid		fid = DatumGetUInt64(PG_GETARG_DATUM(0));
	bool		quoted = cfd_is_quoted(fcinfo->flinfo);
	uint32		bytes;
	const char *envelope;
	size_t		length;
	char	   *text;

	cfd_check_shown(fcinfo->flinfo, type);
	envelope = quoted ? get_quoted(fid, type, &bytes) : get_envelope(fid, type, &bytes);
	if (envelope == NULL)
		PG_RETURN_CSTRING(pstrdup(NOT_QUOTED));
	length = CFD_BASE64_LENGTH((size_t) bytes);
	text = palloc(PREFIX_LENGTH + length + 1);
	memcpy(text, CFD_ENVELOPE_PREFIX, PREFIX_LENGTH);
	cfd_base64_encode(text + PREFIX_LENGTH, (const unsigned char *) envelope, bytes);
	text[PREFIX_LENGTH + length] = '\0';
	if (quoted)
		cfd_cut_remember(fcinfo->flinfo, text);
	PG_RETURN_CSTRING(text);
}

Datum
cfd_type_send(FunctionCallInfo fcinfo, uint8 type)
{
	uint32		bytes;
	const char *envelope;
	bytea	   *result;

	cfd_check_shown(fcinfo->flinfo, type);
	envelope = get_envelope(DatumGetUInt64(PG_GETARG_DATUM(0)), type, &bytes);
	result = palloc(VARHDRSZ + bytes);
	SET_VARSIZE(result, VARHDRSZ + bytes);
	memcpy(VARDATA(result), envelope, bytes);
	PG_RETURN_BYTEA_P(result);
}
