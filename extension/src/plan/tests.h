/*
 * tests.h
 *	  Tests of a constant against values of a column's statistics, which an
 *	  estimator will make (estimate.h), in a message for each function.
 *
 * Invariant: the results of tests are known facts (known/known.h) as long as the
 * planning, or as the call of an estimator outside of it.
 */
#ifndef CFD_PLAN_TESTS_H
#define CFD_PLAN_TESTS_H

#include "postgres.h"
#include "known/known.h"
#include "nodes/pathnodes.h"
#include "program/registry.h"
#include "value/types.h"

/* CfdTests that an estimator will make; count 0 means none. */
typedef struct CfdTests
{
	int			count;
	const CfdFunction *function;
	CfdFid		constant;
	bool		constant_first;
	CfdFid	   *values;
	int			histogram;		/* the first of them that is a bound of the histogram */
	const RelOptInfo *rel;		/* the column of a condition that this planning has asked about, or NULL */
	const Node *var;
} CfdTests;

/* Under which signature, and as which orders, the results of a function are known. */
extern uint16 cfd_tests_comparison(const CfdFunction *function);
extern uint8 cfd_tests_orders(const CfdFunction *function);
/* Whether the result of one of the tests, or of all, is known. */
extern bool cfd_test_known(const CfdTests *made, int number, bool *holds);
extern bool cfd_tests_known(const CfdTests *made);
/*
 * Stores whether a test holds. Any other answer, as for a value that no longer
 * exists, is ignored.
 */
extern void cfd_tests_put(CfdScope *scope, const CfdTests *made, CfdFid value, char answer);
/*
 * Makes the tests of a list that is not empty: one message per function, all
 * sent before the first answer is awaited.
 */
extern void cfd_tests_make(const List *tests);

#endif
