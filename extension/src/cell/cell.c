/*
 * cell.c
 *	  Cells: opening and sealing them, and comparisons by the keeper. See
 *	  cell.h.
 *
 * Invariant: as in cell.h; a cell's bytes are passed on unchanged.
 */
#include "postgres.h"

#include "cell/cell.h"
#include "compat/compat.h"
#include "session/channel.h"
#include "value/place.h"
#include "value/types.h"

#define LOOSE_BYTES (1 + sizeof(CfdFid))
#define SEALED_BYTES (CFD_CELL_HEADER_BYTES + CFD_CELL_TAG_BYTES)

bool		cfd_cell_building = false;

static void
refuse_cell(uint8 type)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("malformed cell of type rnd_%s", cfd_plain_name(type)),
			 errhint("Cells must be passed on unchanged.")));
}

const uint8 *
cfd_cell_token(const struct varlena *cell)
{
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(cell);

	if (VARSIZE_ANY_EXHDR(cell) < SEALED_BYTES + CFD_CELL_TOKEN_BYTES || bytes[0] != CFD_CELL_TOKENED)
		return NULL;
	return bytes + CFD_CELL_HEADER_BYTES;
}

bool
cfd_cell_is_sealed(const struct varlena *cell)
{
	if (cfd_cell_token(cell) != NULL)
		return true;
	return VARSIZE_ANY_EXHDR(cell) >= SEALED_BYTES && *(const uint8 *) VARDATA_ANY(cell) == CFD_CELL_SEALED;
}

void
cfd_cell_check(const struct varlena *cell, uint8 type)
{
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(cell);
	uint8		kept = type == CFD_TYPE_VARCHAR ? CFD_TYPE_TEXT : type;

	if (!cfd_cell_is_sealed(cell) || bytes[1] != kept)
		refuse_cell(type);
}

static CfdFid
loose_fid(const struct varlena *cell, uint8 type)
{
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(cell);
	CfdFid		fid;

	if (VARSIZE_ANY_EXHDR(cell) != LOOSE_BYTES || bytes[0] != CFD_CELL_LOOSE)
		refuse_cell(type);
	fid = cfd_get64(bytes + sizeof(uint8));
	if (fid == 0)
		cfd_invalid_fid();
	return fid;
}

CfdFid
cfd_cell_open_bytes(const void *bytes, uint32 length, uint8 type)
{
	CfdWireCellOpen body = {.t = type};

	cfd_begin();
	body.fid = cfd_new_slot(CFD_STATEMENT);
	cfd_send(CFD_KIND_CELL_OPEN, &body, sizeof(body), bytes, length);
	cfd_after_operation();
	return body.fid;
}

CfdFid
cfd_cell_open(FmgrInfo *flinfo, struct varlena *cell, uint8 type)
{
	if (!cfd_cell_is_sealed(cell))
		return loose_fid(cell, type);
	return cfd_cell_open_bytes(VARDATA_ANY(cell), VARSIZE_ANY_EXHDR(cell), type);
}

struct varlena *
cfd_cell_loose(CfdFid fid)
{
	struct varlena *cell = palloc(VARHDRSZ + LOOSE_BYTES);
	uint8	   *bytes = (uint8 *) VARDATA(cell);

	SET_VARSIZE(cell, VARHDRSZ + LOOSE_BYTES);
	bytes[0] = CFD_CELL_LOOSE;
	cfd_put64(bytes + sizeof(uint8), fid);
	return cell;
}

struct varlena *
cfd_cell_seal(CfdFid fid, uint8 type, CfdCellColumn *column)
{
	CfdWireCellSeal body = {.fid = fid,.t = type};
	struct varlena *cell;
	const char *answer;
	uint32		length;

	if (column != NULL && column->token)
		body.flags = CFD_CELL_WITH_TOKEN;
	cfd_begin();
	answer = cfd_call(CFD_KIND_CELL_SEAL, &body, sizeof(body), column != NULL ? column->names : NULL,
					  column != NULL ? column->length : 0, &length);
	if (length == 0)
		return NULL;
	cell = palloc(VARHDRSZ + length);
	SET_VARSIZE(cell, VARHDRSZ + length);
	memcpy(VARDATA(cell), answer, length);
	if (!cfd_cell_is_sealed(cell))
		cfd_violation("malformed cell");
	if (column != NULL)
	{
		memcpy(column->identity, VARDATA(cell) + 2, CFD_CELL_COLUMN_BYTES);
		memcpy(column->generation, VARDATA(cell) + CFD_CELL_GENERATION_AT, CFD_CELL_GENERATION_BYTES);
		column->known = true;
	}
	return cell;
}

/* ---------- comparisons ---------- */

/* Writes an operand. A FID is sent as a loose cell. */
static uint32
put_operand(uint8 *out, const CfdCellOperand *operand, Datum value, const void **bytes)
{
	if (operand->is_cell)
	{
		struct varlena *cell = (struct varlena *) DatumGetPointer(value);

		*bytes = VARDATA_ANY(cell);
		return VARSIZE_ANY_EXHDR(cell);
	}
	out[0] = CFD_CELL_LOOSE;
	cfd_put64(out + sizeof(uint8), DatumGetUInt64(value));
	*bytes = out;
	return LOOSE_BYTES;
}

int
cfd_cell_compare(const CfdCellOperand operands[2], Datum a, Datum b, uint8 flags)
{
	CfdWireCellCompare body = {.a = operands[0].type,.b = operands[1].type,.flags = flags};
	CfdReadCellCompareAnswer read;
	uint8		loose[2][LOOSE_BYTES];
	const void *first;
	const void *second;
	const char *answer;
	char	   *tail;
	uint32		length;
	uint32		rest;

	length = put_operand(loose[0], &operands[0], a, &first);
	rest = put_operand(loose[1], &operands[1], b, &second);
	body.length = length;
	if (cfd_cell_building)
		body.flags |= CFD_CELL_FOR_INDEX;
	tail = palloc(length + rest);
	memcpy(tail, first, length);
	memcpy(tail + length, second, rest);
	cfd_begin();
	answer = cfd_call(CFD_KIND_CELL_COMPARE, &body, sizeof(body), tail, length + rest, &length);
	pfree(tail);
	CFD_DECODE(cell_compare_answer, answer, length, &read);
	if (read.head.order < -1 || read.head.order > CFD_NULL_RESULT)
		cfd_violation("impossible order");
	return read.head.order;
}
