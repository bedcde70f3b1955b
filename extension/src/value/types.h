/*
 * types.h
 *	  Mapping between the OIDs and the codes of protected types in this
 *	  database.
 *
 * Uses catalogs only, never values.
 *
 * Invariant: a type that is not protected has code 0; in a database without
 * the extension, no type is protected.
 */
#ifndef CFD_VALUE_TYPES_H
#define CFD_VALUE_TYPES_H

#include "postgres.h"
#include "access/tupdesc.h"
#include "compat/compat.h"
#include "wire/wire.h"

extern void cfd_types_init(void);
/* Code of a protected type, 0 for any other. */
extern uint8 cfd_type_code(Oid type);
/* Code of the elements, if it is an array of a protected type; 0 otherwise. */
extern uint8 cfd_array_code(Oid type);
/* Code of the FIDs that a column of this type holds: its own, or its elements'. */
extern uint8 cfd_stored_code(Oid type);
/* OID of the protected type with this code; InvalidOid if there is none. */
extern Oid	cfd_type_oid(uint8 code);
/*
 * SQL name of the protected type with this code, and the name and OID of the
 * corresponding plain type.
 */
extern const char *cfd_type_name(uint8 code);
extern const char *cfd_plain_name(uint8 code);
extern Oid	cfd_plain_oid(uint8 code);
/* Raises the error for an invalid FID. */
pg_noreturn extern void cfd_invalid_fid(void);
/*
 * Whether a type is, or contains (array, composite, ...), a type for which
 * code_of returns a code.
 */
typedef uint8 (*CfdCodeOf) (Oid type);
extern bool cfd_contains(Oid type, CfdCodeOf code_of);
/* The same for types whose values are FIDs. */
extern bool cfd_type_contains(Oid type);
/* Whether an attribute has a protected type, or is an array of one. */
extern bool cfd_has_protected(TupleDesc desc);
/*
 * What a column of this type makes its table: a ledger table, a ledger's
 * history, or neither.
 */
typedef enum CfdLedgerRole
{
	CFD_NO_LEDGER = 0,
	CFD_LEDGER_TABLE,
	CFD_LEDGER_HISTORY
} CfdLedgerRole;
extern CfdLedgerRole cfd_ledger_role(Oid type);

/*
 * Another family of types, named by prefix and plain type. Initialise with the
 * prefix only.
 */
typedef struct CfdFamily
{
	const char *prefix;
	uint64		looked_up;		/* value of the catalog change counter at the lookup */
	Oid			oids[CFD_TYPE_MAX + 1];
} CfdFamily;

/*
 * Code of a type of the family, or 0; OID of the family's type with this code,
 * or InvalidOid.
 */
extern uint8 cfd_code_in(CfdFamily *family, Oid type);
extern Oid	cfd_oid_in(CfdFamily *family, uint8 code);

/* OID of the access method "confide", or InvalidOid. */
extern Oid	cfd_access_method(void);

#endif
