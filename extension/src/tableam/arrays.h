/*
 * arrays.h
 *	  Prepares the arrays of protected values in rows to be written: replaces
 *	  the FIDs of their elements with permanent ones.
 *
 * Does not look at other columns (slots.h), and does not write rows.
 *
 * Invariant: as in slots.h.
 */
#ifndef CFD_TABLEAM_ARRAYS_H
#define CFD_TABLEAM_ARRAYS_H

#include "postgres.h"
#include "executor/tuptable.h"
#include "utils/relcache.h"

/* The slots have the relation's own columns. */
extern void cfd_promote_arrays(Relation relation, TupleTableSlot **slots, int count);

#endif
