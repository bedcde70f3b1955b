/*
 * evaluate.h
 *	  Implementation of the SQL functions of protected types: evaluates an
 *	  operation in the keeper, either one-way (the result is a FID) or with
 *	  an answer (the result is declassified).
 *
 * Does not see values, and does not interpret signatures.
 *
 * Invariant: the form of every answer is checked before use.
 */
#ifndef CFD_OPS_EVALUATE_H
#define CFD_OPS_EVALUATE_H

#include "postgres.h"
#include "wire/wire.h"
#include "fmgr.h"
#include "utils/sortsupport.h"

#define CFD_OPERANDS_MAX 7

/* Returns a FID. The operands are the arguments from number `first` on. */
extern Datum cfd_evaluate(FunctionCallInfo fcinfo, uint32 program, int32 immediate, int first, int operands);
/*
 * As above, for operations whose result may be NULL, which is found out with
 * the signature `test` (the = operator of its type).
 */
extern Datum cfd_evaluate_nullable(FunctionCallInfo fcinfo, uint32 program, int32 immediate, int first,
								   int operands, uint32 test);
/* As above, for operands that are not arguments. */
extern CfdFid cfd_evaluate_fid(FmgrInfo *flinfo, uint32 program, int32 immediate, const CfdFid *operands, int count);
extern Datum cfd_test(FunctionCallInfo fcinfo, uint32 program, int operands);
/* Whether a value is in the frame of a window: (value, base, offset, preceding, up to the bound). */
extern Datum cfd_in_range(FunctionCallInfo fcinfo, uint32 program);
/* A test of two operands that follows from their order. */
extern Datum cfd_compare(FunctionCallInfo fcinfo, uint32 program, uint16 comparison, uint8 holds);
extern Datum cfd_order(FunctionCallInfo fcinfo, uint32 program);
/* Order of two values that are not NULL. */
extern int	cfd_order_fids(uint32 program, CfdFid a, CfdFid b);
/*
 * ops/sort_support.c. While set, equal values have equal abbreviations: all have
 * the same. Sorts are slower then.
 */
extern bool cfd_sort_alike;
extern void cfd_sort_support(SortSupport ssup, uint8 type, uint32 program);
extern Datum cfd_hash(FunctionCallInfo fcinfo, uint32 program);
extern Datum cfd_hash_seeded(FunctionCallInfo fcinfo, uint32 program);
/* extract and similar functions, whose first argument is the name of a field. */
extern Datum cfd_unit(FunctionCallInfo fcinfo, uint32 program, uint32 test);
/* The contract's code of a field, or 0 if PostgreSQL or Confide does not know it. */
extern int32 cfd_unit_code(const text *name);
/* Application of a type modifier: (value, typmod [, explicit]). */
extern Datum cfd_typmod(FunctionCallInfo fcinfo, uint32 assignment, uint32 explicit_cast);
/* Converts a plain value into a protected one. cast: signature to apply to it, or 0. */
extern Datum cfd_from_plain(FunctionCallInfo fcinfo, uint8 type, uint32 cast);
extern Datum cfd_aggregate_step(FunctionCallInfo fcinfo, uint16 aggregate);
/*
 * Result of an aggregate. It is NULL according to the signature `test` (the =
 * operator of its type).
 */
extern Datum cfd_aggregate_final_or_null(FunctionCallInfo fcinfo, uint32 test);
/* Whether a computed value is NULL, according to the = operator of its type. */
extern bool cfd_is_null(uint32 test, CfdFid fid);
/*
 * Aggregate step with two arguments: the second one is inserted before the
 * first (string_agg), or both are aggregated in turn.
 */
extern Datum cfd_aggregate_step_two(FunctionCallInfo fcinfo, uint16 aggregate, bool joined);

#endif
