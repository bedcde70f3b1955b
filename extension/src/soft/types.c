/*
 * types.c
 *	  The types of the family soft_ in this database: see soft.h.
 *
 * Looked up at the first use, and again after any change to pg_type, as in
 * value/types.c.
 *
 * Invariant: safe to call whenever catalogs can be read; gives 0 otherwise.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "soft/soft.h"
#include "utils/inval.h"
#include "utils/syscache.h"
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

static Oid	oids[CFD_TYPE_MAX + 1];
static bool loaded = false;

static void
soft_types_invalidate(Datum arg, int cache, uint32 hash)
{
	loaded = false;
}

void
cfd_soft_init(void)
{
	CacheRegisterSyscacheCallback(TYPEOID, soft_types_invalidate, (Datum) 0);
}

static bool
soft_types_load(void)
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
		if (types[code].possible == 0)
			continue;
		snprintf(name, sizeof(name), "soft_%s", cfd_plain_name(code));
		oids[code] = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(name),
									 ObjectIdGetDatum(PG_CATALOG_NAMESPACE));
	}
	return true;
}

uint8
cfd_soft_code(Oid type)
{
	/* Types made by initdb are not ours. */
	if (type < FirstNormalObjectId || !soft_types_load())
		return 0;
	for (int code = 1; code <= CFD_TYPE_MAX; code++)
	{
		if (oids[code] == type)
			return code;
	}
	return 0;
}

Oid
cfd_soft_oid(uint8 code)
{
	return soft_types_load() ? oids[code] : InvalidOid;
}

int
cfd_soft_digits(uint8 code)
{
	return types[code].digits;
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
