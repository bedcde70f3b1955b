/*
 * registry.c
 *	  Maps a function's OID to the keeper's operation; see registry.h.
 *
 * Results are cached by OID until pg_proc changes.
 *
 * Invariant: as in registry.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "cell/cell.h"
#include "nodes/pg_list.h"
#include "nodes/value.h"
#include "program/registry.h"
#include "soft/soft.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "value/types.h"

/* Declarations of all functions ... */
#define CFD_TYPE(name, type)
#define CFD_SORT(name, type, signature)
/* Only windows call these. */
#define CFD_IN_RANGE(name, signature)
#define CFD_EVAL(name, signature, operands) extern Datum cfd_##name(PG_FUNCTION_ARGS);
#define CFD_TEST(name, signature, operands) extern Datum cfd_##name(PG_FUNCTION_ARGS);
#define CFD_COMPARE(name, signature, comparison, holds) extern Datum cfd_##name(PG_FUNCTION_ARGS);
#define CFD_ORDER(name, signature) extern Datum cfd_##name(PG_FUNCTION_ARGS);
#define CFD_HASH(name, signature) extern Datum cfd_##name(PG_FUNCTION_ARGS);
#define CFD_UNIT(name, signature, test) extern Datum cfd_##name(PG_FUNCTION_ARGS);
#define CFD_NULLABLE(name, signature, test, operands) extern Datum cfd_##name(PG_FUNCTION_ARGS);
#define CFD_TYPMOD(name, assignment, explicit_cast) extern Datum cfd_##name(PG_FUNCTION_ARGS);
#define CFD_FROM_PLAIN(name, type, cast) extern Datum cfd_##name(PG_FUNCTION_ARGS);
#define CFD_AGGREGATE_STEP(name, aggregate) extern Datum cfd_##name(PG_FUNCTION_ARGS);
/* States with two arguments are updated row by row. */
#define CFD_AGGREGATE_JOIN(name, aggregate)
#define CFD_AGGREGATE_PAIR(name, aggregate)
#define CFD_AGGREGATE_FINAL(name, test)
#include "generated/functions.inc"
#define CFD_CELL_TYPE(name, type, assignment, explicit_cast) extern Datum cfd_cell_open_##name(PG_FUNCTION_ARGS);
#define CFD_CELL_CAST(from, from_type, to, signature) extern Datum cfd_cell_open_##from##_to_##to(PG_FUNCTION_ARGS);
#define CFD_CELL_PLAIN(from, from_type, to, signature)
#include "generated/cells.inc"

/* ... and the table that lists them. */
#undef CFD_CELL_TYPE
#undef CFD_CELL_CAST
#undef CFD_EVAL
#undef CFD_TEST
#undef CFD_COMPARE
#undef CFD_ORDER
#undef CFD_HASH
#undef CFD_UNIT
#undef CFD_NULLABLE
#undef CFD_TYPMOD
#undef CFD_FROM_PLAIN
#undef CFD_AGGREGATE_STEP
#define CFD_EVAL(name, signature, operands) {cfd_##name, #name, CFD_CALL_EVAL, signature, 0, operands},
#define CFD_TEST(name, signature, operands) {cfd_##name, #name, CFD_CALL_TEST, signature, 0, operands},
#define CFD_COMPARE(name, signature, comparison, holds) {cfd_##name, #name, CFD_CALL_TEST, signature, comparison, 2, holds},
#define CFD_ORDER(name, signature) {cfd_##name, #name, CFD_CALL_ORDER, signature, 0, 2},
#define CFD_HASH(name, signature) {cfd_##name, #name, CFD_CALL_HASH, signature, 0, 1},
#define CFD_UNIT(name, signature, test) {cfd_##name, #name, CFD_CALL_UNIT, signature, test, 1},
#define CFD_NULLABLE(name, signature, test, operands) {cfd_##name, #name, CFD_CALL_NULLABLE, signature, test, operands},
#define CFD_TYPMOD(name, assignment, explicit_cast) {cfd_##name, #name, CFD_CALL_TYPMOD, assignment, explicit_cast, 1},
#define CFD_FROM_PLAIN(name, type, cast) {cfd_##name, #name, CFD_CALL_FROM_PLAIN, 0, cast, 0},
#define CFD_AGGREGATE_STEP(name, aggregate) {cfd_##name, #name, CFD_CALL_AGGREGATE_STEP, aggregate, 0, 1},

#define CFD_CELL_TYPE(name, type, assignment, explicit_cast) {cfd_cell_open_##name, "open", CFD_CALL_OPEN, 0, 0, 1},
#define CFD_CELL_CAST(from, from_type, to, signature) \
	{cfd_cell_open_##from##_to_##to, "open", CFD_CALL_OPEN, signature, 0, 1},

static const CfdFunction functions[] = {
#include "generated/functions.inc"
#include "generated/cells.inc"
	{cfd_soft_open, "open", CFD_CALL_OPEN, 0, 0, 1},
};

/* Comparison functions of cells, and their operators. */
typedef struct Comparison
{
	PGFunction	address;
	const char *operator;
} Comparison;

static const Comparison comparisons[] = {
	{cfd_cell_lt, "<"},
	{cfd_cell_le, "<="},
	{cfd_cell_eq, "="},
	{cfd_cell_ge, ">="},
	{cfd_cell_gt, ">"},
	{cfd_cell_ne, "<>"},
};

typedef struct Known
{
	Oid			oid;
	const CfdFunction *function;
	const CfdFunction *of_values;
} Known;

static HTAB *known = NULL;
static bool stale = false;

static void
cfd_registry_invalidate(Datum arg, int cache, uint32 hash)
{
	(void) arg;
	(void) cache;
	(void) hash;
	stale = true;
}

static void
make_known(void)
{
	HASHCTL		control = {.keysize = sizeof(Oid),.entrysize = sizeof(Known),.hcxt = TopMemoryContext};
	static bool registered = false;

	if (!registered)
	{
		CacheRegisterSyscacheCallback(PROCOID, cfd_registry_invalidate, (Datum) 0);
		registered = true;
	}
	if (known != NULL && stale)
	{
		hash_destroy(known);
		known = NULL;
	}
	stale = false;
	if (known == NULL)
		known = hash_create("confide functions", 256, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static const CfdFunction *
by_address(PGFunction address)
{
	for (int i = 0; i < lengthof(functions); i++)
	{
		if (functions[i].address == address)
			return &functions[i];
	}
	return NULL;
}

/*
 * The function that compares the values in cells: the operator of the
 * corresponding protected types.
 */
static const CfdFunction *
of_values(PGFunction address, const Oid types[2])
{
	const char *name = NULL;
	Oid			twins[2];
	Oid			operator;
	FmgrInfo	info;

	for (int i = 0; i < lengthof(comparisons); i++)
	{
		if (comparisons[i].address == address)
			name = comparisons[i].operator;
	}
	if (name == NULL)
		return NULL;
	for (int i = 0; i < 2; i++)
	{
		uint8		code = cfd_family_code(types[i]);

		/* Text and varchar share their operators. */
		twins[i] = cfd_type_oid(code == CFD_TYPE_VARCHAR ? CFD_TYPE_TEXT : code);
	}
	operator = OpernameGetOprid(list_make2(makeString("pg_catalog"), makeString(pstrdup(name))), twins[0], twins[1]);
	if (!OidIsValid(operator))
		return NULL;
	fmgr_info(get_opcode(operator), &info);
	return by_address(info.fn_addr);
}

static void
look_up(Oid oid, Known *found)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	const CfdFunction *function;
	FmgrInfo	info;
	bool		in_c;
	bool		strict;
	Oid			types[2] = {InvalidOid, InvalidOid};

	found->function = found->of_values = NULL;
	if (!HeapTupleIsValid(tuple))
		return;
	in_c = ((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId;
	strict = ((Form_pg_proc) GETSTRUCT(tuple))->proisstrict;
	if (((Form_pg_proc) GETSTRUCT(tuple))->pronargs == 2)
		memcpy(types, ((Form_pg_proc) GETSTRUCT(tuple))->proargtypes.values, sizeof(types));
	ReleaseSysCache(tuple);
	if (!in_c)
		return;
	fmgr_info(oid, &info);
	function = by_address(info.fn_addr);
	/* The keeper returns NULL for NULL, so the function must be strict. */
	if (function != NULL && !strict && function->call != CFD_CALL_AGGREGATE_STEP)
		return;
	found->function = found->of_values = function;
	if (function == NULL && strict)
		found->of_values = of_values(info.fn_addr, types);
}

static Known
known_of(Oid oid)
{
	Known		made = {.oid = oid};
	Known	   *entry;

	/* Functions created by initdb are not Confide's. */
	if (oid < FirstNormalObjectId)
		return made;
	if (known == NULL || stale)
		make_known();
	entry = hash_search(known, &oid, HASH_FIND, NULL);
	if (entry != NULL)
		return *entry;
	look_up(oid, &made);
	/* The lookup may have invalidated the cache. */
	if (!stale)
	{
		entry = hash_search(known, &oid, HASH_ENTER, NULL);
		*entry = made;
	}
	return made;
}

const CfdFunction *
cfd_function(Oid oid)
{
	return known_of(oid).function;
}

const CfdFunction *
cfd_function_of_values(Oid oid)
{
	return known_of(oid).of_values;
}

const char *
cfd_signature_name(uint16 signature)
{
	for (int i = 0; i < lengthof(functions); i++)
	{
		if (functions[i].call == CFD_CALL_AGGREGATE_STEP || functions[i].call == CFD_CALL_FROM_PLAIN ||
			functions[i].call == CFD_CALL_OPEN)
			continue;
		if (functions[i].signature == signature)
			return functions[i].name;
	}
	return "call";
}
