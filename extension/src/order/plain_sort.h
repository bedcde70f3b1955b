/*
 * plain_sort.h
 *	  Ranks of a plain key column, computed by PostgreSQL's sort. With them
 *	  the keeper learns the order of values that are not numbers
 *	  (order/plain.h).
 *
 * Does not deal with protected columns.
 *
 * Invariant: ranks compare as the operator orders the values, including NULLs
 * and direction; equal values have equal ranks.
 */
#ifndef CFD_ORDER_PLAIN_SORT_H
#define CFD_ORDER_PLAIN_SORT_H

#include "postgres.h"

typedef struct CfdPlainSort CfdPlainSort;

/* Allocated in the current memory context. Sorts within work_mem and spills to disk. */
extern CfdPlainSort *cfd_plain_sort_create(Oid type, Oid operator, Oid collation, bool nulls_first);
extern void cfd_plain_sort_add(CfdPlainSort *sort, Datum value, bool null);
/* After the last row: the rank of each row, allocated in the current memory context. */
extern uint32 *cfd_plain_sort_ranks(CfdPlainSort *sort);
extern void cfd_plain_sort_end(CfdPlainSort *sort);

#endif
