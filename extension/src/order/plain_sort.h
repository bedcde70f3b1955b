/*
 * plain_sort.h
 *	  Ranks of a plain key column, found by PostgreSQL's own sort: what tells the keeper the
 *	  order of values that are no numbers (order/plain.h).
 *
 * Does not look at protected columns.
 *
 * Invariant: ranks compare as the operator orders the values, NULLs and direction included;
 * equal values have equal ranks.
 */
#ifndef CFD_ORDER_PLAIN_SORT_H
#define CFD_ORDER_PLAIN_SORT_H

#include "postgres.h"

typedef struct CfdPlainSort CfdPlainSort;

/* In the current memory context; sorts within work_mem, what does not fit goes to disk. */
extern CfdPlainSort *cfd_plain_sort_create(Oid type, Oid operator, Oid collation, bool nulls_first);
extern void cfd_plain_sort_add(CfdPlainSort *sort, Datum value, bool null);
/* After the last row: for each one its rank, in the current memory context. */
extern uint32 *cfd_plain_sort_ranks(CfdPlainSort *sort);
extern void cfd_plain_sort_end(CfdPlainSort *sort);

#endif
