/*
 * types.c
 *	  The types of the family rnd_ in this database, of cells without and
 *	  with tokens (rnd_det_); see cell.h.
 *
 * Invariant: as in value/types.h.
 */
#include "postgres.h"

#include "cell/cell.h"
#include "value/types.h"

static CfdFamily cells = {"rnd_"};
static CfdFamily tokened = {"rnd_det_"};

uint8
cfd_cell_code(Oid type)
{
	uint8		code = cfd_code_in(&cells, type);

	return code != 0 ? code : cfd_code_in(&tokened, type);
}

bool
cfd_cell_has_token(Oid type)
{
	return cfd_code_in(&tokened, type) != 0;
}

bool
cfd_cell_contains(Oid type)
{
	return cfd_contains(type, cfd_cell_code);
}

uint8
cfd_family_code(Oid type)
{
	uint8		code = cfd_type_code(type);

	return code != 0 ? code : cfd_cell_code(type);
}

bool
cfd_family_contains(Oid type)
{
	return cfd_contains(type, cfd_family_code);
}
