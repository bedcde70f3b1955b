/*
 * arrays.h
 *	  The FIDs within an array of a protected type.
 *
 * An array of protected values is one of PostgreSQL's arrays, whose elements
 * are FIDs. In a column it is always stored in the row, as it is: its type has
 * the storage "plain", so it is neither compressed nor moved to a TOAST table
 * (sql/core_arrays.sql).
 *
 * Does not know what the FIDs stand for.
 *
 * Invariant: nothing beyond the array's own length is read.
 */
#ifndef CFD_VALUE_ARRAYS_H
#define CFD_VALUE_ARRAYS_H

#include "postgres.h"
#include "utils/array.h"
#include "wire/wire.h"

/*
 * The FIDs of an array's elements that are not NULL. These have a fixed length,
 * so they stand one after the other.
 */
static inline CfdFid *
cfd_array_fids(ArrayType *array, int *count)
{
	*count = (VARSIZE(array) - ARR_DATA_OFFSET(array)) / sizeof(CfdFid);
	return (CfdFid *) ARR_DATA_PTR(array);
}

#endif
