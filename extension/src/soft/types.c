/*
 * types.c
 *	  The types of the family soft_ in this database; see soft.h.
 *
 * Invariant: as in value/types.h.
 */
#include "postgres.h"

#include "soft/soft.h"
#include "value/types.h"

typedef struct Type
{
	uint8		digits;
	uint8		possible;
	uint8		usual;
} Type;

static const Type types[CFD_TYPE_MAX + 1] = {
#define X(code, digits, possible, usual) [code] = {digits, possible, usual},
	CFD_SOFT_TYPES(X)
#undef X
};

static CfdFamily family = {"soft_"};

uint8
cfd_soft_code(Oid type)
{
	return cfd_code_in(&family, type);
}

Oid
cfd_soft_oid(uint8 code)
{
	return cfd_oid_in(&family, code);
}

int
cfd_soft_digits(uint8 code, uint8 shape)
{
	return code == CFD_TYPE_TEXT ? 2 * shape : types[code].digits;
}

uint8
cfd_soft_possible(uint8 code)
{
	return types[code].possible;
}

uint8
cfd_soft_usual(uint8 code)
{
	return types[code].usual;
}
