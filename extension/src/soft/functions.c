/*
 * functions.c
 *	  SQL functions of the family soft_: input, output, fitting into a
 *	  column, comparisons.
 *
 * Columns without an order encoding are ordered by their sealed values where
 * any order will do: unique indexes, GROUP BY, merge joins. hooks/soft.c makes
 * sure that this is never mistaken for the order of the values.
 *
 * Invariant: as in soft.h.
 */
#include "postgres.h"

#include "cell/cell.h"
#include "commands/vacuum.h"
#include "common/hashfn.h"
#include "compat/compat.h"
#include "libpq/pqformat.h"
#include "soft/soft.h"
#include "utils/builtins.h"
#include "value/base64.h"
#include "value/cut.h"
#include "value/types.h"

#define PREFIX_LENGTH (sizeof(CFD_SOFT_PREFIX) - 1)

/* ---------- input ---------- */

/*
 * Checks that a value fits into a column: it has the column's key and shape,
 * and the encodings that the column requires.
 */
static void
check_fits(const CfdSoft *value, int32 typmod)
{
	uint8		missing;

	if (typmod < 0)
		return;
	if (cfd_soft_key(typmod) != 0 &&
		(value->key != cfd_soft_key(typmod) || value->shape != cfd_soft_shape(typmod)))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a value of type soft_%s was encoded for another column", cfd_plain_name(value->type)),
				 errdetail("It has key %u, the column has key %u.", value->key, cfd_soft_key(typmod)),
				 errhint("Give both columns one type and one key, or pass the value through the application.")));
	missing = cfd_soft_encodings(typmod) & ~value->encodings;
	if (missing != 0)
		cfd_soft_missing(value, missing);
}

static struct varlena *
checked(struct varlena *cell, Oid type, int32 typmod)
{
	uint8		code = cfd_soft_code(type);
	CfdSoft		value;

	if (!cfd_soft_read(&value, (unsigned char *) VARDATA(cell), VARSIZE(cell) - VARHDRSZ) || value.type != code)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("malformed cell of type soft_%s", code == 0 ? "?" : cfd_plain_name(code)),
				 errhint("Cells must be passed on unchanged.")));
	check_fits(&value, typmod);
	return cell;
}

pg_noreturn static void refuse_plain(void);

static void
refuse_plain(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("plaintext constant meets an encoded value"),
			 errdetail("Values of the family soft_ are encoded by Confide's proxy, which has the keys."),
			 errhint("Connect through Confide's proxy.")));
}

/* Decodes the text form of a cell. */
static struct varlena *
decoded(const char *text)
{
	struct varlena *cell;

	if (strncmp(text, CFD_SOFT_PREFIX, PREFIX_LENGTH) != 0)
		refuse_plain();
	cell = cfd_base64_varlena(text + PREFIX_LENGTH);
	if (cell == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("malformed cell of the family soft_"),
				 errhint("Cells must be passed on unchanged.")));
	return cell;
}

PG_FUNCTION_INFO_V1(cfd_soft_in);
Datum
cfd_soft_in(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(checked(decoded(PG_GETARG_CSTRING(0)), PG_GETARG_OID(1), PG_GETARG_INT32(2)));
}

PG_FUNCTION_INFO_V1(cfd_soft_recv);
Datum
cfd_soft_recv(PG_FUNCTION_ARGS)
{
	StringInfo	buffer = (StringInfo) PG_GETARG_POINTER(0);
	int			bytes = buffer->len - buffer->cursor;
	struct varlena *cell = palloc(VARHDRSZ + bytes);

	if (bytes == 0 || buffer->data[buffer->cursor] != CFD_SOFT_VALUE)
		refuse_plain();
	SET_VARSIZE(cell, VARHDRSZ + bytes);
	pq_copymsgbytes(buffer, VARDATA(cell), bytes);
	PG_RETURN_POINTER(checked(cell, PG_GETARG_OID(1), PG_GETARG_INT32(2)));
}

/* Length coercion function: fits a value into a column. */
PG_FUNCTION_INFO_V1(cfd_soft_fit);
Datum
cfd_soft_fit(PG_FUNCTION_ARGS)
{
	CfdSoft		value = cfd_soft_value(PG_GETARG_DATUM(0));

	check_fits(&value, PG_GETARG_INT32(1));
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

/* ---------- output, including results ---------- */

PG_FUNCTION_INFO_V1(cfd_soft_out);
Datum
cfd_soft_out(PG_FUNCTION_ARGS)
{
	struct varlena *cell = PG_GETARG_VARLENA_PP(0);
	size_t		bytes = VARSIZE_ANY_EXHDR(cell);
	size_t		length = CFD_BASE64_LENGTH(bytes);
	char	   *text = palloc(PREFIX_LENGTH + length + 1);

	memcpy(text, CFD_SOFT_PREFIX, PREFIX_LENGTH);
	cfd_base64_encode(text + PREFIX_LENGTH, (unsigned char *) VARDATA_ANY(cell), bytes);
	text[PREFIX_LENGTH + length] = '\0';
	cfd_cut_remember(fcinfo->flinfo, text);
	PG_RETURN_CSTRING(text);
}

PG_FUNCTION_INFO_V1(cfd_soft_send);
Datum
cfd_soft_send(PG_FUNCTION_ARGS)
{
	struct varlena *cell = PG_GETARG_VARLENA_PP(0);
	StringInfoData buffer;

	pq_begintypsend(&buffer);
	pq_sendbytes(&buffer, VARDATA_ANY(cell), VARSIZE_ANY_EXHDR(cell));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}

PG_FUNCTION_INFO_V1(cfd_soft_result_in);
Datum
cfd_soft_result_in(PG_FUNCTION_ARGS)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("sums and products of encoded values cannot be taken in"),
			 errhint("They are results only.")));
}

/* ---------- comparisons ---------- */

static int
by_sealed(const CfdSoft *a, const CfdSoft *b)
{
	int			order = memcmp(a->sealed, b->sealed, Min(a->sealed_length, b->sealed_length));

	if (order != 0 || a->sealed_length == b->sealed_length)
		return order;
	return a->sealed_length < b->sealed_length ? -1 : 1;
}

static int
by_order(const CfdSoft *a, const CfdSoft *b)
{
	if (a->left == NULL)
		cfd_soft_missing(a, CFD_SOFT_ORD);
	if (b->left == NULL)
		cfd_soft_missing(b, CFD_SOFT_ORD);
	return cfd_soft_order(a, b);
}

static bool
both_have(const CfdSoft *a, const CfdSoft *b, uint8 encoding)
{
	return (a->encodings & b->encodings & encoding) != 0;
}

static bool
same(FunctionCallInfo fcinfo)
{
	CfdSoft		a = cfd_soft_value(PG_GETARG_DATUM(0));
	CfdSoft		b = cfd_soft_value(PG_GETARG_DATUM(1));

	cfd_soft_alike(&a, &b);
	if (both_have(&a, &b, CFD_SOFT_EQ))
		return by_sealed(&a, &b) == 0;
	if (!both_have(&a, &b, CFD_SOFT_ORD))
		cfd_soft_missing(&a, CFD_SOFT_EQ);
	return by_order(&a, &b) == 0;
}

pg_noreturn static void refuse_tie(const CfdSoft *value);

static void
refuse_tie(const CfdSoft *value)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("the order of two texts is not known"),
			 errdetail("They agree in the first %u bytes, which have an order.", value->shape)));
}

/*
 * Returns some total order, which is the order of the values if they have an
 * order encoding. The planner calls this for estimates, so the operators do
 * not refuse values without one; hooks/soft.c refuses them in queries. What
 * must be exact is refused where texts agree in all bytes that have an order.
 */
static int
some_order(FunctionCallInfo fcinfo, bool exact)
{
	CfdSoft		a = cfd_soft_value(PG_GETARG_DATUM(0));
	CfdSoft		b = cfd_soft_value(PG_GETARG_DATUM(1));

	cfd_soft_alike(&a, &b);
	if (both_have(&a, &b, CFD_SOFT_EQ) && by_sealed(&a, &b) == 0)
		return 0;
	if (both_have(&a, &b, CFD_SOFT_ORD))
	{
		int			order = by_order(&a, &b);

		/* Texts that agree as far as their order goes. */
		if (order == 0 && a.type == CFD_TYPE_TEXT)
		{
			if (exact)
				refuse_tie(&a);
			return by_sealed(&a, &b);
		}
		return order;
	}
	if (!both_have(&a, &b, CFD_SOFT_EQ))
		cfd_soft_missing(&a, CFD_SOFT_EQ);
	return by_sealed(&a, &b);
}

#define TEST(name, condition) \
	PG_FUNCTION_INFO_V1(cfd_soft_##name); \
	Datum cfd_soft_##name(PG_FUNCTION_ARGS) \
	{ \
		PG_RETURN_BOOL(condition); \
	}

TEST(lt, some_order(fcinfo, true) < 0)
TEST(le, some_order(fcinfo, true) <= 0)
TEST(eq, same(fcinfo))
TEST(ge, some_order(fcinfo, true) >= 0)
TEST(gt, some_order(fcinfo, true) > 0)
TEST(ne, !same(fcinfo))

PG_FUNCTION_INFO_V1(cfd_soft_cmp);
Datum
cfd_soft_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(some_order(fcinfo, false));
}

static Datum
extreme(FunctionCallInfo fcinfo, int sign)
{
	CfdSoft		a = cfd_soft_value(PG_GETARG_DATUM(0));
	CfdSoft		b = cfd_soft_value(PG_GETARG_DATUM(1));

	cfd_soft_alike(&a, &b);
	return PG_GETARG_DATUM(by_order(&a, &b) * sign >= 0 ? 0 : 1);
}

PG_FUNCTION_INFO_V1(cfd_soft_larger);
Datum
cfd_soft_larger(PG_FUNCTION_ARGS)
{
	return extreme(fcinfo, 1);
}

PG_FUNCTION_INFO_V1(cfd_soft_smaller);
Datum
cfd_soft_smaller(PG_FUNCTION_ARGS)
{
	return extreme(fcinfo, -1);
}

static CfdSoft
hashed(FunctionCallInfo fcinfo)
{
	CfdSoft		value = cfd_soft_value(PG_GETARG_DATUM(0));

	if ((value.encodings & CFD_SOFT_EQ) == 0)
		cfd_soft_missing(&value, CFD_SOFT_EQ);
	return value;
}

PG_FUNCTION_INFO_V1(cfd_soft_hash);
Datum
cfd_soft_hash(PG_FUNCTION_ARGS)
{
	CfdSoft		value = hashed(fcinfo);

	return hash_any(value.sealed, value.sealed_length);
}

PG_FUNCTION_INFO_V1(cfd_soft_hash_extended);
Datum
cfd_soft_hash_extended(PG_FUNCTION_ARGS)
{
	CfdSoft		value = hashed(fcinfo);

	return hash_any_extended(value.sealed, value.sealed_length, PG_GETARG_INT64(1));
}

/* ---------- statistics ---------- */

/* Uses the standard statistics. If nothing can be compared, computes widths only. */
PG_FUNCTION_INFO_V1(cfd_soft_analyze);
Datum
cfd_soft_analyze(PG_FUNCTION_ARGS)
{
	VacAttrStats *stats = (VacAttrStats *) PG_GETARG_POINTER(0);

	if ((cfd_soft_encodings(stats->attrtypmod) & (CFD_SOFT_EQ | CFD_SOFT_ORD)) == 0)
		return cfd_cell_analyze(fcinfo);
	PG_RETURN_BOOL(std_typanalyze(stats));
}

/* ---------- with the keeper ---------- */

/* Opens a cell, if the keeper has the column's key: the cast to the type enc_.... */
PG_FUNCTION_INFO_V1(cfd_soft_open);
Datum
cfd_soft_open(PG_FUNCTION_ARGS)
{
	struct varlena *cell = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0));
	CfdSoft		value;

	if (!cfd_soft_read(&value, (unsigned char *) VARDATA_ANY(cell), VARSIZE_ANY_EXHDR(cell)))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("malformed cell of the family soft_")));
	PG_RETURN_UINT64(cfd_cell_open_bytes(VARDATA_ANY(cell), VARSIZE_ANY_EXHDR(cell), value.type));
}
