/*
 * value.c
 *	  Decoding of cells of the family soft_; see soft.h.
 *
 * Invariant: no byte beyond the cell's end is read, whatever the cell
 * contains.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "session/connect.h"
#include "soft/soft.h"
#include "utils/builtins.h"
#include "value/types.h"

bool
cfd_soft_read(CfdSoft *value, const unsigned char *bytes, Size length)
{
	uint8		possible;

	memset(value, 0, sizeof(*value));
	if (length < CFD_SOFT_HEADER_BYTES + CFD_SOFT_LENGTH_BYTES || bytes[0] != CFD_SOFT_VALUE ||
		bytes[1] > CFD_TYPE_MAX)
		return false;
	value->type = bytes[1];
	value->encodings = bytes[2];
	value->shape = bytes[3];
	memcpy(&value->key, bytes + 4, sizeof(value->key));
	possible = cfd_soft_possible(value->type);
	if (possible == 0 || (value->encodings & ~possible) != 0)
		return false;
	memcpy(&value->sealed_length, bytes + CFD_SOFT_HEADER_BYTES, CFD_SOFT_LENGTH_BYTES);
	bytes += CFD_SOFT_HEADER_BYTES + CFD_SOFT_LENGTH_BYTES;
	length -= CFD_SOFT_HEADER_BYTES + CFD_SOFT_LENGTH_BYTES;
	if (value->sealed_length > length)
		return false;
	value->sealed = bytes;
	bytes += value->sealed_length;
	length -= value->sealed_length;
	if (value->encodings & CFD_SOFT_ORD)
	{
		Size		left;
		Size		right;

		/* Equal orders are no equal texts, so they need the other encoding. */
		if (value->type == CFD_TYPE_TEXT && ((value->encodings & CFD_SOFT_EQ) == 0 ||
											 value->shape > CFD_SOFT_ORDER_BYTES_MAX))
			return false;
		value->digits = cfd_soft_digits(value->type, value->shape);
		left = value->digits * CFD_SOFT_LEFT_BYTES;
		right = CFD_SOFT_NONCE_BYTES + value->digits * CFD_SOFT_RIGHT_BYTES;
		if (length < left + right)
			return false;
		value->left = bytes;
		value->right = bytes + left;
		bytes += left + right;
		length -= left + right;
	}
	/*
	 * A value to compare with a column has neither of these, even if the
	 * column has.
	 */
	if (value->encodings & CFD_SOFT_ADD)
	{
		if (length < CFD_SOFT_ADD_BYTES)
			return false;
		value->add = bytes;
		bytes += CFD_SOFT_ADD_BYTES;
		length -= CFD_SOFT_ADD_BYTES;
	}
	if (value->encodings & CFD_SOFT_MUL)
	{
		if (length < CFD_SOFT_MUL_BYTES)
			return false;
		value->mul = bytes;
		length -= CFD_SOFT_MUL_BYTES;
	}
	return length == 0;
}

uint32
cfd_soft_sealed_bytes(const struct varlena *cell)
{
	const unsigned char *bytes = (const unsigned char *) VARDATA_ANY(cell);
	Size		length = VARSIZE_ANY_EXHDR(cell);
	const Size	head = CFD_SOFT_HEADER_BYTES + CFD_SOFT_LENGTH_BYTES;
	uint32		sealed;

	if (length < head || bytes[0] != CFD_SOFT_VALUE)
		return 0;
	memcpy(&sealed, bytes + CFD_SOFT_HEADER_BYTES, sizeof(sealed));
	/* The keeper refuses a cell that says it is longer than it is. */
	return sealed <= length - head ? head + sealed : length;
}

CfdSoft
cfd_soft_value(Datum datum)
{
	struct varlena *cell = PG_DETOAST_DATUM_PACKED(datum);
	CfdSoft		value;

	if (!cfd_soft_read(&value, (unsigned char *) VARDATA_ANY(cell), VARSIZE_ANY_EXHDR(cell)))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("malformed cell of the family soft_")));
	return value;
}

void
cfd_soft_alike(const CfdSoft *a, const CfdSoft *b)
{
	if (a->type == b->type && a->shape == b->shape && a->key == b->key)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("encodings with different keys cannot be computed with each other"),
			 errhint("Give both columns one type and one key: soft_int4(key_%u).", a->key)));
}

/* What to do without an encoding. */
const char *
cfd_soft_hint(void)
{
	if (cfd_keeper_socket[0] == '\0')
		return "Name it among the encodings in the column's type.";
	return "Name it among the encodings in the column's type, or give the column's key to the keeper: \"confide transfer-key\".";
}

void
cfd_soft_missing(const CfdSoft *value, uint8 encoding)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("the values of type soft_%s have no encoding \"%s\"", cfd_plain_name(value->type),
					cfd_soft_encoding_name(encoding)),
			 errhint("%s", cfd_soft_hint())));
}
