/*
 * soft.h
 *	  Cells of the family soft_: encodings that PostgreSQL computes on.
 *	  crates/contract/src/soft.rs defines the layout; docs/families.md
 *	  explains the encodings.
 *
 * Neither keys nor the keeper are involved. What cannot be computed on the
 * encodings of a cell is refused, with the name of the missing encoding.
 *
 * Invariants: cells are validated before they are used; cells with different
 * keys are never compared or added.
 */
#ifndef CFD_SOFT_SOFT_H
#define CFD_SOFT_SOFT_H

#include "postgres.h"
#include "compat/compat.h"
#include "fmgr.h"
#include "nodes/primnodes.h"
#include "wire/wire.h"

/* types.c: code of a type soft_..., or 0; properties of a type by its code. */
extern uint8 cfd_soft_code(Oid type);
extern Oid	cfd_soft_oid(uint8 code);
extern int	cfd_soft_digits(uint8 code, uint8 shape);
extern uint8 cfd_soft_possible(uint8 code);
extern uint8 cfd_soft_usual(uint8 code);

/* modifier.c: contents of a column's type modifier. */
static inline uint32
cfd_soft_key(int32 typmod)
{
	return typmod < 0 ? 0 : typmod & ((1 << CFD_SOFT_KEY_BITS) - 1);
}

static inline uint8
cfd_soft_shape(int32 typmod)
{
	return typmod < 0 ? 0 : (typmod >> CFD_SOFT_SHAPE_SHIFT) & 0xff;
}

static inline uint8
cfd_soft_encodings(int32 typmod)
{
	return typmod < 0 ? 0 : typmod >> CFD_SOFT_ENCODINGS_SHIFT;
}

/*
 * Completes the modifier of a column that has no key yet, with the default
 * encodings of the type.
 */
extern int32 cfd_soft_completed(uint8 code, int32 typmod, uint32 key);
/* Name of the lowest of these encodings. */
extern const char *cfd_soft_encoding_name(uint8 encodings);

/* A decoded value, as far as it is needed. */
typedef struct CfdSoft
{
	uint8		type;
	uint8		encodings;
	uint8		shape;
	uint32		key;
	const unsigned char *sealed;
	uint32		sealed_length;
	const unsigned char *left;	/* NULL without an order encoding */
	const unsigned char *right;
	int			digits;
	const unsigned char *add;	/* NULL without an additive encoding */
	const unsigned char *mul;	/* NULL without a multiplicative encoding */
} CfdSoft;

/* value.c: decodes a value. Returns false if it is malformed. */
extern bool cfd_soft_read(CfdSoft *value, const unsigned char *bytes, Size length);
/*
 * Bytes of a cell up to the end of its sealed value, which is what the keeper
 * opens; 0 if it is not of the family.
 */
extern uint32 cfd_soft_sealed_bytes(const struct varlena *cell);
/* Decodes a stored cell. Raises an error if it is malformed. */
extern CfdSoft cfd_soft_value(Datum cell);
/* Raises an error unless both have the same type, shape and key. */
extern void cfd_soft_alike(const CfdSoft *a, const CfdSoft *b);
/* Raises the error for a missing encoding. */
pg_noreturn extern void cfd_soft_missing(const CfdSoft *value, uint8 encoding);

/* What to do without an encoding, for errors. */
extern const char *cfd_soft_hint(void);

/*
 * order.c: the first digit in which two values differ decides. 1: a is less, 2:
 * greater, 0: the halves of an encoding do not belong together, -1: equal.
 */
extern int	cfd_soft_digit_order(const CfdSoft *a, const CfdSoft *b);
/* Compares two values of one key that have an order encoding. */
extern int	cfd_soft_order(const CfdSoft *a, const CfdSoft *b);

/* functions.c: by whose addresses they are known. */
extern Datum cfd_soft_open(PG_FUNCTION_ARGS);
extern Datum cfd_soft_lt(PG_FUNCTION_ARGS);
extern Datum cfd_soft_le(PG_FUNCTION_ARGS);
extern Datum cfd_soft_eq(PG_FUNCTION_ARGS);
extern Datum cfd_soft_ge(PG_FUNCTION_ARGS);
extern Datum cfd_soft_gt(PG_FUNCTION_ARGS);
extern Datum cfd_soft_ne(PG_FUNCTION_ARGS);

#endif
