/*
 * types.c
 *	  The protected types of this database; see types.h.
 *
 * OIDs are looked up at first use, and again after any change to pg_type or
 * pg_am. Types are recognised by name and schema. Only superusers can create
 * types in pg_catalog, and a fake type would gain them nothing because the
 * keeper checks types.
 *
 * Invariant: safe to call whenever catalogs can be read; returns 0 otherwise.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_range.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "value/types.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* How many types of users are remembered. */
#define OTHERS 64

static const struct
{
	const char *name;
	Oid			plain;
}			types[CFD_TYPE_MAX + 1] = {
	[CFD_TYPE_BOOL] = {"enc_bool", BOOLOID},
	[CFD_TYPE_INT2] = {"enc_int2", INT2OID},
	[CFD_TYPE_INT4] = {"enc_int4", INT4OID},
	[CFD_TYPE_INT8] = {"enc_int8", INT8OID},
	[CFD_TYPE_FLOAT4] = {"enc_float4", FLOAT4OID},
	[CFD_TYPE_FLOAT8] = {"enc_float8", FLOAT8OID},
	[CFD_TYPE_NUMERIC] = {"enc_numeric", NUMERICOID},
	[CFD_TYPE_TEXT] = {"enc_text", TEXTOID},
	[CFD_TYPE_VARCHAR] = {"enc_varchar", VARCHAROID},
	[CFD_TYPE_BPCHAR] = {"enc_bpchar", BPCHAROID},
	[CFD_TYPE_BYTEA] = {"enc_bytea", BYTEAOID},
	[CFD_TYPE_DATE] = {"enc_date", DATEOID},
	[CFD_TYPE_TIME] = {"enc_time", TIMEOID},
	[CFD_TYPE_TIMESTAMP] = {"enc_timestamp", TIMESTAMPOID},
	[CFD_TYPE_TIMESTAMPTZ] = {"enc_timestamptz", TIMESTAMPTZOID},
	[CFD_TYPE_INTERVAL] = {"enc_interval", INTERVALOID},
	[CFD_TYPE_UUID] = {"enc_uuid", UUIDOID},
	[CFD_TYPE_JSON] = {"enc_json", JSONOID},
	[CFD_TYPE_JSONB] = {"enc_jsonb", JSONBOID},
};

StaticAssertDecl(CFD_TYPE_MAX == CFD_TYPE_JSONB, "a type is missing in the list above");

/* Aliases under which some functions accept protected numbers. */
static const struct
{
	const char *name;
	uint8		code;
}			operands[] = {
	{"enc_int2_operand", CFD_TYPE_INT2},
	{"enc_int4_operand", CFD_TYPE_INT4},
	{"enc_int8_operand", CFD_TYPE_INT8},
	{"enc_float4_operand", CFD_TYPE_FLOAT4},
	{"enc_float8_operand", CFD_TYPE_FLOAT8},
	{"enc_numeric_operand", CFD_TYPE_NUMERIC},
	{"enc_timestamp_operand", CFD_TYPE_TIMESTAMP},
	{"enc_timestamptz_operand", CFD_TYPE_TIMESTAMPTZ},
	{"enc_interval_operand", CFD_TYPE_INTERVAL},
	{"enc_bytea_operand", CFD_TYPE_BYTEA},
	{"enc_int4_count", CFD_TYPE_INT4},
};

static Oid	oids[CFD_TYPE_MAX + 1];
static Oid	operand_oids[lengthof(operands)];
static Oid	access_method = InvalidOid;
/* Domains used for version numbers of rows (sql/core_ledger.sql). */
static Oid	ledger_number = InvalidOid;
static Oid	ledger_past_number = InvalidOid;
/* What the types are that are none of the above: codes of domains over protected types, or 0. */
static struct
{
	Oid			type;
	uint8		code;
}			others[OTHERS];
static bool loaded = false;
static uint64 changes = 1;		/* number of changes to the catalogs concerned */

/* Hash values of the types above in PostgreSQL's cache, if all of them were found. */
static uint32 hashes[CFD_TYPE_MAX + lengthof(operands) + 2];
static int	hash_count = 0;

/* Every new table has a type. It is none of ours, so these need not be looked up again. */
static bool
is_of_others(int cache, uint32 hash)
{
	for (int i = 0; i < hash_count; i++)
	{
		if (hashes[i] == hash)
			return false;
	}
	return cache == TYPEOID && hash != 0 && hash_count == lengthof(hashes);
}

static void
cfd_types_invalidate(Datum arg, int cache, uint32 hash)
{
	(void) arg;
	if (!is_of_others(cache, hash))
		loaded = false;
	memset(others, 0, sizeof(others));
	changes++;
}

void
cfd_types_init(void)
{
	CacheRegisterSyscacheCallback(TYPEOID, cfd_types_invalidate, (Datum) 0);
	CacheRegisterSyscacheCallback(AMOID, cfd_types_invalidate, (Datum) 0);
}

static Oid
oid_of(const char *name)
{
	return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(name),
						   ObjectIdGetDatum(PG_CATALOG_NAMESPACE));
}

static void
note_hash(Oid type)
{
	if (OidIsValid(type))
		hashes[hash_count++] = GetSysCacheHashValue1(TYPEOID, ObjectIdGetDatum(type));
}

static void
note_hashes(void)
{
	note_hash(ledger_number);
	note_hash(ledger_past_number);
	for (int code = 1; code <= CFD_TYPE_MAX; code++)
		note_hash(oids[code]);
	for (int i = 0; i < lengthof(operands); i++)
		note_hash(operand_oids[i]);
}

static bool
load(void)
{
	if (loaded)
		return true;
	if (!IsTransactionState() || !OidIsValid(MyDatabaseId))
		return false;
	/*
	 * Set the flag first: an invalidation during the lookups must cause a new
	 * lookup.
	 */
	loaded = true;
	hash_count = 0;
	memset(oids, 0, sizeof(oids));
	memset(operand_oids, 0, sizeof(operand_oids));
	memset(others, 0, sizeof(others));
	ledger_number = ledger_past_number = InvalidOid;
	access_method = GetSysCacheOid1(AMNAME, Anum_pg_am_oid, CStringGetDatum("confide"));
	if (!OidIsValid(access_method) && !SearchSysCacheExists2(TYPENAMENSP, CStringGetDatum("enc_bool"),
															 ObjectIdGetDatum(PG_CATALOG_NAMESPACE)))
		return true;
	ledger_number = oid_of("ledger_sn");
	ledger_past_number = oid_of("ledger_past_sn");
	for (int code = 1; code <= CFD_TYPE_MAX; code++)
		oids[code] = oid_of(types[code].name);
	for (int i = 0; i < lengthof(operands); i++)
		operand_oids[i] = oid_of(operands[i].name);
	note_hashes();
	return true;
}

static uint8
code_of_base(Oid type)
{
	for (int code = 1; code <= CFD_TYPE_MAX; code++)
	{
		if (oids[code] == type)
			return code;
	}
	for (int i = 0; i < lengthof(operands); i++)
	{
		if (operand_oids[i] == type)
			return operands[i].code;
	}
	return 0;
}

/*
 * A value of a domain is one of its base type. The answer is kept, since
 * PostgreSQL's caches are slow.
 */
static uint8
code_of_domain(Oid type)
{
	int			at = type % OTHERS;
	uint64		before = changes;
	Oid			base;
	uint8		code;

	if (others[at].type == type)
		return others[at].code;
	base = get_typtype(type) == TYPTYPE_DOMAIN ? getBaseType(type) : InvalidOid;
	code = base >= FirstNormalObjectId ? code_of_base(base) : 0;
	/* The lookup may have emptied the list; then the answer is not kept. */
	if (loaded && before == changes)
	{
		others[at].type = type;
		others[at].code = code;
	}
	return code;
}

uint8
cfd_type_code(Oid type)
{
	uint8		code;

	/* Types created by initdb are not protected. */
	if (type < FirstNormalObjectId || !load())
		return 0;
	code = code_of_base(type);
	return code != 0 ? code : code_of_domain(type);
}

uint8
cfd_array_code(Oid type)
{
	Oid			element;

	if (type < FirstNormalObjectId || !load())
		return 0;
	element = get_element_type(type);
	for (int code = 1; code <= CFD_TYPE_MAX && OidIsValid(element); code++)
	{
		if (oids[code] == element)
			return code;
	}
	return 0;
}

uint8
cfd_stored_code(Oid type)
{
	uint8		code = cfd_type_code(type);

	return code != 0 ? code : cfd_array_code(type);
}

CfdLedgerRole
cfd_ledger_role(Oid type)
{
	if (type < FirstNormalObjectId || !load())
		return CFD_NO_LEDGER;
	if (type == ledger_number)
		return CFD_LEDGER_TABLE;
	return type == ledger_past_number ? CFD_LEDGER_HISTORY : CFD_NO_LEDGER;
}

Oid
cfd_type_oid(uint8 code)
{
	return code <= CFD_TYPE_MAX && load() ? oids[code] : InvalidOid;
}

const char *
cfd_type_name(uint8 code)
{
	return code <= CFD_TYPE_MAX && types[code].name != NULL ? types[code].name : "???";
}

const char *
cfd_plain_name(uint8 code)
{
	return cfd_type_name(code) + strlen("enc_");
}

Oid
cfd_plain_oid(uint8 code)
{
	return code <= CFD_TYPE_MAX ? types[code].plain : InvalidOid;
}

static bool
load_family(CfdFamily *family)
{
	char		name[NAMEDATALEN];

	if (!load())
		return false;
	if (family->looked_up == changes)
		return true;
	family->looked_up = changes;	/* as in load() */
	memset(family->oids, 0, sizeof(family->oids));
	if (!OidIsValid(oids[CFD_TYPE_BOOL]))
		return true;
	for (int code = 1; code <= CFD_TYPE_MAX; code++)
	{
		snprintf(name, sizeof(name), "%s%s", family->prefix, cfd_plain_name(code));
		family->oids[code] = oid_of(name);
	}
	return true;
}

uint8
cfd_code_in(CfdFamily *family, Oid type)
{
	/* Types created by initdb are not protected. */
	if (type < FirstNormalObjectId || !load_family(family))
		return 0;
	for (int code = 1; code <= CFD_TYPE_MAX; code++)
	{
		if (family->oids[code] == type)
			return code;
	}
	return 0;
}

Oid
cfd_oid_in(CfdFamily *family, uint8 code)
{
	return code <= CFD_TYPE_MAX && load_family(family) ? family->oids[code] : InvalidOid;
}

Oid
cfd_access_method(void)
{
	return load() ? access_method : InvalidOid;
}

bool
cfd_has_protected(TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (!attribute->attisdropped && cfd_stored_code(attribute->atttypid) != 0)
			return true;
	}
	return false;
}

static bool
composite_contains(Oid type, CfdCodeOf code_of)
{
	TupleDesc	desc = lookup_rowtype_tupdesc_noerror(type, -1, true);
	bool		found = false;

	if (desc == NULL)
		return false;
	for (int i = 0; i < desc->natts && !found; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			found = cfd_contains(TupleDescAttr(desc, i)->atttypid, code_of);
	}
	ReleaseTupleDesc(desc);
	return found;
}

bool
cfd_contains(Oid type, CfdCodeOf code_of)
{
	Oid			base;
	Oid			element;

	/*
	 * Protected types, and types that contain them, can only exist once the
	 * extension has been created.
	 */
	if (type < FirstNormalObjectId || !load() || !OidIsValid(oids[CFD_TYPE_BOOL]))
		return false;
	if (code_of(type) != 0)
		return true;
	base = getBaseType(type);
	if (base != type)
		return cfd_contains(base, code_of);
	element = get_element_type(type);
	if (OidIsValid(element))
		return cfd_contains(element, code_of);
	switch (get_typtype(type))
	{
		case TYPTYPE_RANGE:
			return cfd_contains(get_range_subtype(type), code_of);
		case TYPTYPE_MULTIRANGE:
			return cfd_contains(get_multirange_range(type), code_of);
		case TYPTYPE_COMPOSITE:
			return composite_contains(type, code_of);
		default:
			return false;
	}
}

bool
cfd_type_contains(Oid type)
{
	return cfd_contains(type, cfd_type_code);
}

void
cfd_invalid_fid(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("invalid identifier of a protected value"),
			 errdetail("It stands for nothing, but is not NULL."),
			 errhint("Was it cast from another type?")));
}
