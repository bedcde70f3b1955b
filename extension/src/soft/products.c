/*
 * products.c
 *	  Products and quotients of the family soft_. Multiplies masked values
 *	  modulo the prime 2^127 - 1 and records the factors, whose masks the
 *	  product contains. A quotient is two products.
 *
 * A factor that is zero stays zero when it is masked. It is not multiplied but
 * noted, so that the client can still tell whether what comes before it was
 * in range.
 *
 * Invariant: a part has the masks of all its factors before the first zero,
 * and its factors are in the order in which SQL multiplies them.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "lib/stringinfo.h"
#include "soft/soft.h"

#define PRIME (((uint128) 1 << 127) - 1)
#define MASK64 ((uint128) PG_UINT64_MAX)

/* Factors multiplied with each other, or a single value. */
typedef struct Part
{
	uint8		type;
	uint8		count;
	uint8		zero;			/* the first factor that is zero, from 1; or 0 */
	uint128 value;				/* of those before it */
	const unsigned char *factors;
} Part;

/* Has room for the factor that a single value is. */
typedef struct Operand
{
	Part		part;
	unsigned char single[CFD_SOFT_FACTOR_BYTES];
} Operand;

/* ---------- the field ---------- */

static uint128
product_reduced(uint128 value)
{
	uint128 folded = (value & PRIME) + (value >> 127);

	return folded >= PRIME ? folded - PRIME : folded;
}

/* The product of two numbers below the prime. */
static uint128
product_times(uint128 a, uint128 b)
{
	uint128 a1 = a >> 64;
	uint128 a0 = a & MASK64;
	uint128 b1 = b >> 64;
	uint128 b0 = b & MASK64;
	/* high * 2^128 + low. The factors are below 2^127, so nothing overflows. */
	uint128 left = a1 * b0 + ((a0 * b0) >> 64);
	uint128 right = (left & MASK64) + a0 * b1;
	uint128 high = a1 * b1 + (left >> 64) + (right >> 64);
	uint128 low = (right << 64) | ((a0 * b0) & MASK64);

	/* 2^128 is 2 modulo the prime. */
	return product_reduced(product_reduced(product_reduced(high) << 1) + product_reduced(low));
}

/* ---------- operands ---------- */

pg_noreturn static void refuse_operand(bool quotient);

static void
refuse_operand(bool quotient)
{
	if (quotient)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a quotient of encoded values is a result only"),
				 errdetail("It is rounded when the client opens it."),
				 errhint("Compute with it in the application.")));
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("malformed product of the family soft_")));
}

static void
read_value(Operand *operand, Datum datum)
{
	CfdSoft		value = cfd_soft_value(datum);
	unsigned char *factor = operand->single;
	Part	   *part = &operand->part;

	if (value.mul == NULL)
		cfd_soft_missing(&value, CFD_SOFT_MUL);
	part->type = value.type;
	part->count = 1;
	factor[0] = value.type;
	factor[1] = value.shape;
	memcpy(factor + 4, &value.key, sizeof(value.key));
	memcpy(factor + 8, value.mul, sizeof(uint64));
	part->factors = factor;
	memcpy(&part->value, value.mul + sizeof(uint64), sizeof(part->value));
	if (part->value >= PRIME)
		refuse_operand(false);
	if (part->value == 0)
	{
		part->zero = 1;
		part->value = 1;
	}
}

/* Reads a value or a product. */
static void
read_operand(Operand *operand, Datum datum)
{
	struct varlena *cell = PG_DETOAST_DATUM_PACKED(datum);
	const unsigned char *bytes = (unsigned char *) VARDATA_ANY(cell);
	Size		length = VARSIZE_ANY_EXHDR(cell);
	Part	   *part = &operand->part;

	memset(operand, 0, sizeof(*operand));
	if (length == 0 || (bytes[0] != CFD_SOFT_PRODUCT && bytes[0] != CFD_SOFT_QUOTIENT))
	{
		read_value(operand, PointerGetDatum(cell));
		return;
	}
	if (bytes[0] == CFD_SOFT_QUOTIENT)
		refuse_operand(true);
	if (length < CFD_SOFT_PRODUCT_BYTES + CFD_SOFT_PART_BYTES)
		refuse_operand(false);
	part->type = bytes[1];
	bytes += CFD_SOFT_PRODUCT_BYTES;
	part->count = bytes[0];
	part->zero = bytes[1];
	memcpy(&part->value, bytes + 2, sizeof(part->value));
	part->factors = bytes + CFD_SOFT_PART_BYTES;
	if (length != CFD_SOFT_PRODUCT_BYTES + CFD_SOFT_PART_BYTES + part->count * CFD_SOFT_FACTOR_BYTES ||
		part->zero > part->count || part->value >= PRIME)
		refuse_operand(false);
}

/* The type of a result: the later one in this order. */
static uint8
product_type(uint8 a, uint8 b)
{
	static const uint8 types[] = {CFD_TYPE_INT2, CFD_TYPE_INT4, CFD_TYPE_INT8, CFD_TYPE_NUMERIC};
	uint8		result = 0;

	for (int i = 0; i < lengthof(types); i++)
	{
		if (a == types[i] || b == types[i])
			result = types[i];
	}
	return result;
}

/* ---------- results ---------- */

static void
begin_result(StringInfo out, uint8 kind, uint8 type)
{
	static const char length[VARHDRSZ];

	initStringInfo(out);
	appendBinaryStringInfo(out, length, VARHDRSZ);
	appendStringInfoCharMacro(out, kind);
	appendStringInfoCharMacro(out, type);
}

static void
append_head(StringInfo out, const Part *part)
{
	appendStringInfoCharMacro(out, part->count);
	appendStringInfoCharMacro(out, part->zero);
	appendBinaryStringInfo(out, (char *) &part->value, sizeof(part->value));
}

static void
append_factors(StringInfo out, const Part *part)
{
	appendBinaryStringInfo(out, (char *) part->factors, part->count * CFD_SOFT_FACTOR_BYTES);
}

static Datum
end_result(StringInfo out)
{
	SET_VARSIZE(out->data, out->len);
	return PointerGetDatum(out->data);
}

PG_FUNCTION_INFO_V1(cfd_soft_multiply);
Datum
cfd_soft_multiply(PG_FUNCTION_ARGS)
{
	Operand		a;
	Operand		b;
	const Part *first = &a.part;
	const Part *second = &b.part;
	Part		product;
	StringInfoData out;

	read_operand(&a, PG_GETARG_DATUM(0));
	read_operand(&b, PG_GETARG_DATUM(1));
	/* x * (y * z): the product was computed first. */
	if (second->count > 1)
	{
		first = &b.part;
		second = &a.part;
	}
	if (second->count != 1 || first->count >= CFD_SOFT_FACTORS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("too many factors of encoded values"),
				 errdetail("A product has at most %d factors, and is multiplied with one at a time.",
						   CFD_SOFT_FACTORS_MAX)));
	product = *first;
	product.count++;
	if (first->zero == 0 && second->zero != 0)
		product.zero = product.count;
	else if (first->zero == 0)
		product.value = product_times(first->value, second->value);
	begin_result(&out, CFD_SOFT_PRODUCT, product_type(first->type, second->type));
	append_head(&out, &product);
	append_factors(&out, first);
	append_factors(&out, second);
	PG_RETURN_DATUM(end_result(&out));
}

PG_FUNCTION_INFO_V1(cfd_soft_divide);
Datum
cfd_soft_divide(PG_FUNCTION_ARGS)
{
	Operand		a;
	Operand		b;
	StringInfoData out;

	read_operand(&a, PG_GETARG_DATUM(0));
	read_operand(&b, PG_GETARG_DATUM(1));
	/* If one is a product, the client first checks whether it is in range. */
	if (b.part.zero != 0 && a.part.count == 1 && b.part.count == 1)
		ereport(ERROR,
				(errcode(ERRCODE_DIVISION_BY_ZERO),
				 errmsg("division by zero")));
	begin_result(&out, CFD_SOFT_QUOTIENT, product_type(a.part.type, b.part.type));
	append_head(&out, &a.part);
	append_factors(&out, &a.part);
	append_head(&out, &b.part);
	append_factors(&out, &b.part);
	PG_RETURN_DATUM(end_result(&out));
}
