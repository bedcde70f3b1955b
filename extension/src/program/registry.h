/*
 * registry.h
 *	  Maps SQL functions to the operations that the keeper performs for
 *	  them.
 *
 * Functions are identified by the address of their C code, not by name. The
 * table is generated from the same list as the functions themselves.
 *
 * Invariant: a function that is not Confide's yields NULL.
 */
#ifndef CFD_PROGRAM_REGISTRY_H
#define CFD_PROGRAM_REGISTRY_H

#include "postgres.h"
#include "fmgr.h"

typedef enum CfdCall
{
	CFD_CALL_EVAL,				/* operands; the result is a FID */
	CFD_CALL_TEST,				/* operands; the result is a boolean */
	CFD_CALL_ORDER,				/* two operands; the result is an order */
	CFD_CALL_HASH,				/* one operand; the result is a hash */
	CFD_CALL_UNIT,				/* name of a field (plain), operand */
	CFD_CALL_NULLABLE,			/* operand; the result may be NULL */
	CFD_CALL_TYPMOD,			/* operand, type modifier (plain) [, explicit (plain)] */
	CFD_CALL_FROM_PLAIN,		/* a plain value */
	CFD_CALL_AGGREGATE_STEP,	/* state, operand */
	CFD_CALL_OPEN				/* a cell; then a cast, if there is a signature */
} CfdCall;

typedef struct CfdFunction
{
	PGFunction	address;
	const char *name;			/* as in the generated list */
	CfdCall		call;
	uint16		signature;		/* aggregate step: number of the aggregate */
	uint16		second;			/* TYPMOD: explicit cast; FROM_PLAIN: cast or 0; TEST: comparison */
	uint8		operands;		/* number of protected operands */
	uint8		holds;			/* TEST: orders for which it is true; 0: not determined */
} CfdFunction;

extern const CfdFunction *cfd_function(Oid function);
/* As above; a comparison of cells (family rnd_) yields that of the values in them. */
extern const CfdFunction *cfd_function_of_values(Oid function);
/* The name of a signature, for messages. */
extern const char *cfd_signature_name(uint16 signature);

#endif
