/*
 * registry.h
 *	  Which SQL functions are ours, and what the keeper does for them.
 *
 * Functions are told apart by the address of their C code, not by name: the table
 * is made from the generated list, as the functions themselves are.
 *
 * Invariant: what is not ours gives NULL.
 */
#ifndef CFD_PROGRAM_REGISTRY_H
#define CFD_PROGRAM_REGISTRY_H

#include "postgres.h"
#include "fmgr.h"

typedef enum CfdCall
{
	CFD_CALL_EVAL,				/* operands, result is a FID */
	CFD_CALL_TEST,				/* operands, result is a boolean */
	CFD_CALL_ORDER,				/* two operands, result is an order */
	CFD_CALL_HASH,				/* one operand, result is a hash */
	CFD_CALL_UNIT,				/* name of a field (plain), operand */
	CFD_CALL_NULLABLE,			/* operand; the result may be NULL by itself */
	CFD_CALL_TYPMOD,			/* operand, type modifier (plain) [, explicit (plain)] */
	CFD_CALL_FROM_PLAIN,		/* a plain value */
	CFD_CALL_AGGREGATE_STEP,	/* state, operand */
	CFD_CALL_OPEN				/* a cell, then a cast if there is a signature */
} CfdCall;

typedef struct CfdFunction
{
	PGFunction	address;
	const char *name;			/* as in the generated list */
	CfdCall		call;
	uint16		signature;		/* of an aggregate's step: number of the aggregate */
	uint16		second;			/* TYPMOD: in explicit casts; FROM_PLAIN: cast that follows, or 0; TEST: the comparison */
	uint8		operands;		/* those that are protected */
	uint8		holds;			/* TEST: for these orders of two operands; 0: they do not decide */
} CfdFunction;

extern const CfdFunction *cfd_function(Oid function);
/* The same; of a comparison of cells (family rnd_) that of the values in them. */
extern const CfdFunction *cfd_function_of_values(Oid function);
/* A name for a signature, for people. */
extern const char *cfd_signature_name(uint16 signature);

#endif
