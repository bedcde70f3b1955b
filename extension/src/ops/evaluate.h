/*
 * evaluate.h
 *	  What the SQL functions of protected types do: evaluate an operation in the
 *	  keeper, as a message (the result is a FID) or a call (it is declassified).
 *
 * Does not know values, nor what a signature means.
 *
 * Invariant: what the keeper answers is checked for its form before use.
 */
#ifndef CFD_OPS_EVALUATE_H
#define CFD_OPS_EVALUATE_H

#include "postgres.h"
#include "wire/wire.h"
#include "fmgr.h"
#include "utils/sortsupport.h"

#define CFD_OPERANDS_MAX 7

/* The result is a FID; the operands are arguments from number `first` on. */
extern Datum cfd_evaluate(FunctionCallInfo fcinfo, uint32 program, int32 immediate, int first, int operands);
/* As above; the result may be NULL: the signature `test` (= on it) tells. */
extern Datum cfd_evaluate_nullable(FunctionCallInfo fcinfo, uint32 program, int32 immediate, int first,
								   int operands, uint32 test);
/* As above, for an operand that is no argument. */
extern CfdFid cfd_evaluate_fid(FmgrInfo *flinfo, uint32 program, int32 immediate, const CfdFid *operands, int count);
extern Datum cfd_test(FunctionCallInfo fcinfo, uint32 program, int operands);
/* A test of two operands that follows from their order. */
extern Datum cfd_compare(FunctionCallInfo fcinfo, uint32 program, uint16 comparison, uint8 holds);
extern Datum cfd_order(FunctionCallInfo fcinfo, uint32 program);
/* The order of two values that are not NULL. */
extern int	cfd_order_fids(uint32 program, CfdFid a, CfdFid b);
/* ops/sort_support.c */
extern void cfd_sort_support(SortSupport ssup, uint8 type, uint32 program);
extern Datum cfd_hash(FunctionCallInfo fcinfo, uint32 program);
extern Datum cfd_hash_seeded(FunctionCallInfo fcinfo, uint32 program);
/* extract and the like: the first argument is the name of a field */
extern Datum cfd_unit(FunctionCallInfo fcinfo, uint32 program, uint32 test);
/* the contract's code of a field; 0 if PostgreSQL or we do not know it */
extern int32 cfd_unit_code(const text *name);
/* application of a type modifier: (value, typmod [, explicit]) */
extern Datum cfd_typmod(FunctionCallInfo fcinfo, uint32 assignment, uint32 explicit_cast);
/* a plain value becomes a protected one; cast: signature that follows, or 0 */
extern Datum cfd_from_plain(FunctionCallInfo fcinfo, uint8 type, uint32 cast);
extern Datum cfd_aggregate_step(FunctionCallInfo fcinfo, uint16 aggregate);
/* The result of an aggregate, or NULL: the signature `test` (= on it) tells. */
extern Datum cfd_aggregate_final_or_null(FunctionCallInfo fcinfo, uint32 test);
/* Whether a value that was made is NULL, by the signature of = on it. */
extern bool cfd_is_null(uint32 test, CfdFid fid);
/* of two arguments: the second one goes before the first (string_agg), or both are taken in turn */
extern Datum cfd_aggregate_step_two(FunctionCallInfo fcinfo, uint16 aggregate, bool joined);

#endif
