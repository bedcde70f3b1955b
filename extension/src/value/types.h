/*
 * types.h
 *	  The protected types of this database: from OID to code and back.
 *
 * Knows catalogs, not values.
 *
 * Invariant: a type that is not ours has code 0; without the extension in the
 * database no type is ours.
 */
#ifndef CFD_VALUE_TYPES_H
#define CFD_VALUE_TYPES_H

#include "postgres.h"
#include "access/tupdesc.h"
#include "wire/wire.h"

extern void cfd_types_init(void);
/* Code of a protected type, 0 for any other. */
extern uint8 cfd_type_code(Oid type);
/* OID of the protected type with a code; InvalidOid for none. */
extern Oid	cfd_type_oid(uint8 code);
/* SQL name of the protected type with a code, and name of its plain twin. */
extern const char *cfd_type_name(uint8 code);
extern const char *cfd_plain_name(uint8 code);
extern Oid	cfd_plain_oid(uint8 code);
/* Raises the error for an identifier that stands for nothing. */
extern void cfd_invalid_fid(void) pg_attribute_noreturn();
/* Whether a value of the type is or contains (array, composite, ...) one whose type has a code. */
typedef uint8 (*CfdCodeOf) (Oid type);
extern bool cfd_contains(Oid type, CfdCodeOf code_of);
/* ... a FID. */
extern bool cfd_type_contains(Oid type);
/* Whether one of the attributes has a protected type. */
extern bool cfd_has_protected(TupleDesc desc);
/* What a column of this type makes its table: a ledger table, the history of one, or neither. */
typedef enum CfdLedgerRole
{
	CFD_NO_LEDGER = 0,
	CFD_LEDGER_TABLE,
	CFD_LEDGER_HISTORY
} CfdLedgerRole;
extern CfdLedgerRole cfd_ledger_role(Oid type);

/* The types of another family: its prefix and the name of a plain type. Begins as {prefix}. */
typedef struct CfdFamily
{
	const char *prefix;
	uint64		looked_up;		/* when its types were, by the count of changes to catalogs */
	Oid			oids[CFD_TYPE_MAX + 1];
} CfdFamily;

/* Code of a type of the family, 0 for any other; OID of the type with a code, InvalidOid for none. */
extern uint8 cfd_code_in(CfdFamily *family, Oid type);
extern Oid	cfd_oid_in(CfdFamily *family, uint8 code);

/* OID of the access method "confide", InvalidOid when there is none. */
extern Oid	cfd_access_method(void);

#endif
