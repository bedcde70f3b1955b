/*
 * soft.h
 *	  Cells of the family soft_: encodings that PostgreSQL computes on. crates/contract/src/soft.rs
 *	  has the layout, docs/families.md what each encoding is for.
 *
 * No keys here, and no keeper: what cannot be computed on the encodings of a cell is refused,
 * with the name of the encoding that is missing.
 *
 * Invariants: a cell that is read was found to be whole; cells of different keys are never
 * compared, nor added.
 */
#ifndef CFD_SOFT_SOFT_H
#define CFD_SOFT_SOFT_H

#include "postgres.h"
#include "fmgr.h"
#include "nodes/primnodes.h"
#include "wire/wire.h"

/* types.c: code of a type soft_..., 0 for any other; type of a sum. */
extern uint8 cfd_soft_code(Oid type);
extern Oid	cfd_soft_oid(uint8 code);
extern int	cfd_soft_digits(uint8 code);
extern uint8 cfd_soft_possible(uint8 code);
extern uint8 cfd_soft_usual(uint8 code);

/* modifier.c: what a type modifier says of a column. */
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

/* The modifier of a column that has no key yet; with the encodings that a type has. */
extern int32 cfd_soft_completed(uint8 code, int32 typmod, uint32 key);
/* Name of the lowest of these encodings. */
extern const char *cfd_soft_encoding_name(uint8 encodings);

/* A value, as far as it is looked at. */
typedef struct CfdSoft
{
	uint8		type;
	uint8		encodings;
	uint8		shape;
	uint32		key;
	const unsigned char *sealed;
	uint32		sealed_length;
	const unsigned char *left;	/* NULL without order */
	const unsigned char *right;
	int			digits;
	const unsigned char *add;	/* NULL without addition */
} CfdSoft;

/* value.c: false for what is no value. */
extern bool cfd_soft_read(CfdSoft *value, const unsigned char *bytes, Size length);
/* Of a stored cell; raises an error for what is none. */
extern CfdSoft cfd_soft_value(Datum cell);
/* Raises an error unless both are of one type, shape and key. */
extern void cfd_soft_alike(const CfdSoft *a, const CfdSoft *b);
/* Raises an error for an encoding that is missing. */
extern void cfd_soft_missing(const CfdSoft *value, uint8 encoding) pg_attribute_noreturn();

/* order.c: how the value of a left half compares with that of a right one. */
extern int	cfd_soft_order(const unsigned char *left, const unsigned char *right, int digits);

#endif
