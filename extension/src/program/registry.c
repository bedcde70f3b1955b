/*
 * registry.c
 *	  From a function's OID to what the keeper does: see registry.h.
 *
 * What was found for an OID is remembered until pg_proc changes.
 *
 * Invariant: as in registry.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "program/registry.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* Declarations of all functions ... */
#define CFD_TYPE(name, type)
#define CFD_SORT(name, type, signature)
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
/* States that take two arguments are changed row by row. */
#define CFD_AGGREGATE_JOIN(name, aggregate)
#define CFD_AGGREGATE_PAIR(name, aggregate)
#define CFD_AGGREGATE_FINAL(name, test)
#include "generated/functions.inc"

/* ... and the table of them. */
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

static const CfdFunction functions[] = {
#include "generated/functions.inc"
};

typedef struct Known
{
	Oid			oid;
	const CfdFunction *function;
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

static const CfdFunction *
look_up(Oid oid)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	const CfdFunction *function;
	FmgrInfo	info;
	bool		in_c;
	bool		strict;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	in_c = ((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId;
	strict = ((Form_pg_proc) GETSTRUCT(tuple))->proisstrict;
	ReleaseSysCache(tuple);
	if (!in_c)
		return NULL;
	fmgr_info(oid, &info);
	function = by_address(info.fn_addr);
	/* The keeper gives NULL for NULL. */
	if (function != NULL && !strict && function->call != CFD_CALL_AGGREGATE_STEP)
		return NULL;
	return function;
}

const CfdFunction *
cfd_function(Oid oid)
{
	const CfdFunction *function;
	Known	   *entry;
	bool		found;

	/* Functions made by initdb are not ours. */
	if (oid < FirstNormalObjectId)
		return NULL;
	if (known == NULL || stale)
		make_known();
	entry = hash_search(known, &oid, HASH_FIND, NULL);
	if (entry != NULL)
		return entry->function;
	function = look_up(oid);
	/* Looking may have made what is known old. */
	if (!stale)
	{
		entry = hash_search(known, &oid, HASH_ENTER, &found);
		entry->function = function;
	}
	return function;
}

const char *
cfd_signature_name(uint16 signature)
{
	for (int i = 0; i < lengthof(functions); i++)
	{
		if (functions[i].call == CFD_CALL_AGGREGATE_STEP || functions[i].call == CFD_CALL_FROM_PLAIN)
			continue;
		if (functions[i].signature == signature)
			return functions[i].name;
	}
	return "call";
}
