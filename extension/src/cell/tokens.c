/*
 * tokens.c
 *	  Comparisons of the types rnd_det_..., by the tokens in cells.
 *
 * The keeper is asked for the token of what has none in its bytes: a loose
 * cell, a value of the type enc_..., a cell of another column that was put in
 * by hand. Those of temporary values are remembered: their slots are never
 * used again.
 *
 * Invariants: equal values have equal tokens, and hash alike, wherever they
 * stand; the order of tokens is no order of values, and no operator has it.
 */
#include "postgres.h"

#include "cell/cell.h"
#include "common/hashfn.h"
#include "compat/compat.h"
#include "session/channel.h"
#include "value/types.h"

/* A power of two. */
#define REMEMBERED 64

typedef struct Token
{
	uint8		bytes[CFD_CELL_TOKEN_BYTES];
} Token;

typedef struct Remembered
{
	CfdFid		fid;			/* 0: none */
	Token		token;
} Remembered;

static Remembered remembered[REMEMBERED];

/* Asks for the token of a cell. Returns false for NULL. */
static bool
ask_token(const void *cell, uint32 bytes, uint8 type, Token *token)
{
	CfdWireCellToken body = {.t = type};
	const char *answer;
	uint32		length;

	cfd_begin();
	answer = cfd_call(CFD_KIND_CELL_TOKEN, &body, sizeof(body), cell, bytes, &length);
	if (length == 0)
		return false;
	if (length != CFD_CELL_TOKEN_BYTES)
		cfd_violation("malformed token");
	memcpy(token->bytes, answer, CFD_CELL_TOKEN_BYTES);
	return true;
}

static bool
token_of_value(CfdFid fid, uint8 type, Token *token)
{
	Remembered *entry = &remembered[fid & (REMEMBERED - 1)];
	uint8		cell[sizeof(uint8) + sizeof(CfdFid)] = {CFD_CELL_LOOSE};

	if (fid == 0)
		cfd_invalid_fid();
	if (cfd_fid_is_temporary(fid) && entry->fid == fid)
	{
		*token = entry->token;
		return true;
	}
	cfd_put64(cell + sizeof(uint8), fid);
	if (!ask_token(cell, sizeof(cell), type, token))
		return false;
	if (cfd_fid_is_temporary(fid))
		*entry = (Remembered) {.fid = fid,.token = *token};
	return true;
}

/* Token of an operand. Returns false for NULL. */
static bool
token_of(const CfdCellOperand *operand, Datum value, Token *token)
{
	const struct varlena *cell;
	const uint8 *bytes;

	if (!operand->is_cell)
		return token_of_value(DatumGetUInt64(value), operand->type, token);
	cell = (const struct varlena *) PG_DETOAST_DATUM_PACKED(value);
	bytes = cfd_cell_token(cell);
	if (bytes != NULL)
	{
		memcpy(token->bytes, bytes, CFD_CELL_TOKEN_BYTES);
		return true;
	}
	if (!cfd_cell_is_sealed(cell))
		return token_of_value(cfd_cell_open(NULL, unconstify(struct varlena *, cell), operand->type),
							  operand->type, token);
	return ask_token(VARDATA_ANY(cell), VARSIZE_ANY_EXHDR(cell), operand->type, token);
}

/* Compares two tokens. Returns false if a value is NULL. */
static bool
compare_tokens(FunctionCallInfo fcinfo, int *order)
{
	const CfdCellOperand *operands = cfd_cell_operands(fcinfo->flinfo);
	Token		a;
	Token		b;

	if (!token_of(&operands[0], PG_GETARG_DATUM(0), &a) || !token_of(&operands[1], PG_GETARG_DATUM(1), &b))
		return false;
	*order = memcmp(a.bytes, b.bytes, CFD_CELL_TOKEN_BYTES);
	return true;
}

PG_FUNCTION_INFO_V1(cfd_cell_token_eq);
Datum
cfd_cell_token_eq(PG_FUNCTION_ARGS)
{
	int			order;

	if (!compare_tokens(fcinfo, &order))
		PG_RETURN_NULL();
	PG_RETURN_BOOL(order == 0);
}

PG_FUNCTION_INFO_V1(cfd_cell_token_ne);
Datum
cfd_cell_token_ne(PG_FUNCTION_ARGS)
{
	int			order;

	if (!compare_tokens(fcinfo, &order))
		PG_RETURN_NULL();
	PG_RETURN_BOOL(order != 0);
}

/* For B-trees. No key of an index is NULL here, but what is searched for may be. */
PG_FUNCTION_INFO_V1(cfd_cell_token_cmp);
Datum
cfd_cell_token_cmp(PG_FUNCTION_ARGS)
{
	int			order;

	if (!compare_tokens(fcinfo, &order))
		PG_RETURN_INT32(1);
	PG_RETURN_INT32(order < 0 ? -1 : order > 0 ? 1 : 0);
}

static uint64
hash_of_token(FunctionCallInfo fcinfo)
{
	Token		token;
	uint64		hash;

	if (!token_of(cfd_cell_operands(fcinfo->flinfo), PG_GETARG_DATUM(0), &token))
		return 0;
	memcpy(&hash, token.bytes, sizeof(hash));
	return hash;
}

PG_FUNCTION_INFO_V1(cfd_cell_token_hash);
Datum
cfd_cell_token_hash(PG_FUNCTION_ARGS)
{
	PG_RETURN_UINT32((uint32) hash_of_token(fcinfo));
}

PG_FUNCTION_INFO_V1(cfd_cell_token_hash_extended);
Datum
cfd_cell_token_hash_extended(PG_FUNCTION_ARGS)
{
	uint64		hash = hash_of_token(fcinfo);
	uint64		seed = (uint64) PG_GETARG_INT64(1);

	/* PostgreSQL requires that with seed 0 the lower half equals the unseeded hash. */
	PG_RETURN_UINT64(seed == 0 ? hash : hash_combine64(hash, seed));
}
