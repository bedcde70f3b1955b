/*
 * functions.c
 *	  C functions behind all SQL functions of protected types, generated
 *	  from the list. The implementations are in value/io.c and ops/.
 *
 * Invariant: a function's symbol is cfd_ followed by its name in the list, as
 * in sql/generated.sql.
 */
#include "postgres.h"

#include "fmgr.h"
#include "ops/evaluate.h"
#include "value/io.h"

#define FUNCTION(name, call) \
	PG_FUNCTION_INFO_V1(cfd_##name); \
	Datum cfd_##name(PG_FUNCTION_ARGS) { return call; }

#define CFD_TYPE(name, type) \
	FUNCTION(in_##name, cfd_type_in(fcinfo, type)) \
	FUNCTION(out_##name, cfd_type_out(fcinfo, type)) \
	FUNCTION(recv_##name, cfd_type_recv(fcinfo, type)) \
	FUNCTION(send_##name, cfd_type_send(fcinfo, type))
#define CFD_EVAL(name, signature, operands) \
	StaticAssertDecl(operands <= CFD_OPERANDS_MAX, "too many operands"); \
	FUNCTION(name, cfd_evaluate(fcinfo, signature, 0, 0, operands))
#define CFD_TEST(name, signature, operands) \
	StaticAssertDecl(operands <= CFD_OPERANDS_MAX, "too many operands"); \
	FUNCTION(name, cfd_test(fcinfo, signature, operands))
#define CFD_COMPARE(name, signature, comparison, holds) \
	FUNCTION(name, cfd_compare(fcinfo, signature, comparison, holds))
#define CFD_ORDER(name, signature) \
	FUNCTION(name, cfd_order(fcinfo, signature))
#define CFD_SORT(name, type, signature) \
	PG_FUNCTION_INFO_V1(cfd_sort_##name); \
	Datum cfd_sort_##name(PG_FUNCTION_ARGS) \
	{ \
		cfd_sort_support((SortSupport) PG_GETARG_POINTER(0), type, signature); \
		PG_RETURN_VOID(); \
	}
#define CFD_HASH(name, signature) \
	FUNCTION(name, cfd_hash(fcinfo, signature)) \
	FUNCTION(name##_extended, cfd_hash_seeded(fcinfo, signature))
#define CFD_IN_RANGE(name, signature) \
	FUNCTION(name, cfd_in_range(fcinfo, signature))
#define CFD_UNIT(name, signature, test) \
	FUNCTION(name, cfd_unit(fcinfo, signature, test))
#define CFD_NULLABLE(name, signature, test, operands) \
	StaticAssertDecl(operands <= CFD_OPERANDS_MAX, "too many operands"); \
	FUNCTION(name, cfd_evaluate_nullable(fcinfo, signature, 0, 0, operands, test))
#define CFD_TYPMOD(name, assignment, explicit_cast) \
	FUNCTION(name, cfd_typmod(fcinfo, assignment, explicit_cast))
#define CFD_FROM_PLAIN(name, type, cast) \
	FUNCTION(name, cfd_from_plain(fcinfo, type, cast))
#define CFD_AGGREGATE_STEP(name, aggregate) \
	FUNCTION(name, cfd_aggregate_step(fcinfo, aggregate))
#define CFD_AGGREGATE_JOIN(name, aggregate) \
	FUNCTION(name, cfd_aggregate_step_two(fcinfo, aggregate, true))
#define CFD_AGGREGATE_PAIR(name, aggregate) \
	FUNCTION(name, cfd_aggregate_step_two(fcinfo, aggregate, false))
#define CFD_AGGREGATE_FINAL(name, test) \
	FUNCTION(name, cfd_aggregate_final_or_null(fcinfo, test))

#include "generated/functions.inc"
