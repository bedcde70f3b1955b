/*
 * slots.h
 *	  Rows on their way into a relation: finds the FIDs that are not of the
 *	  columns' partitions and replaces them by permanent ones.
 *
 * Does not write rows.
 *
 * The caller calls cfd_unpin_writer once the rows are on their pages: until then
 * garbage collection waits.
 *
 * Invariant: afterwards every FID in the slots is of its column's partition, and
 * the slots hold the same row otherwise; so indexes see what heap sees.
 */
#ifndef CFD_SLOTS_H
#define CFD_SLOTS_H

#include "postgres.h"
#include "executor/tuptable.h"
#include "utils/relcache.h"

extern void cfd_promote_slots(Relation relation, TupleTableSlot **slots, int count);

#endif
