/*
 * types.c
 *	  The types of the family rnd_ in this database: see cell.h.
 *
 * Looked up at the first use, and again after any change to pg_type, as in
 * value/types.c.
 *
 * Invariant: safe to call whenever catalogs can be read; gives 0 otherwise.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/transam.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "cell/cell.h"
#include "miscadmin.h"
#include "utils/inval.h"
#include "utils/syscache.h"
#include "value/types.h"

static Oid	oids[CFD_TYPE_MAX + 1];
static bool loaded = false;

static void
cell_types_invalidate(Datum arg, int cache, uint32 hash)
{
	loaded = false;
}

void
cfd_cells_init(void)
{
	CacheRegisterSyscacheCallback(TYPEOID, cell_types_invalidate, (Datum) 0);
}

static bool
cell_types_load(void)
{
	char		name[NAMEDATALEN];

	if (loaded)
		return true;
	if (!IsTransactionState() || !OidIsValid(MyDatabaseId))
		return false;
	/* An invalidation while we look things up makes us look again. */
	loaded = true;
	memset(oids, 0, sizeof(oids));
	if (!OidIsValid(cfd_access_method()))
		return true;
	for (int code = 1; code <= CFD_TYPE_MAX; code++)
	{
		snprintf(name, sizeof(name), "rnd_%s", cfd_plain_name(code));
		oids[code] = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(name),
									 ObjectIdGetDatum(PG_CATALOG_NAMESPACE));
	}
	return true;
}

uint8
cfd_cell_code(Oid type)
{
	/* Types made by initdb are not ours. */
	if (type < FirstNormalObjectId || !cell_types_load())
		return 0;
	for (int code = 1; code <= CFD_TYPE_MAX; code++)
	{
		if (oids[code] == type)
			return code;
	}
	return 0;
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
