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
#ifndef CFD_TABLEAM_SLOTS_H
#define CFD_TABLEAM_SLOTS_H

#include "postgres.h"
#include "executor/tuptable.h"
#include "nodes/pg_list.h"
#include "utils/relcache.h"

/*
 * The slots' columns are written to the attributes with these numbers; NIL: they are the
 * relation's own.
 */
extern void cfd_promote_slots(Relation relation, const List *numbers, TupleTableSlot **slots, int count);

/* A row that is inserted: what its indexes will be searched for is asked about with it. */
extern void cfd_promote_inserted(Relation relation, TupleTableSlot *slot);
/* A new version of a row: the same, if it will need entries in indexes. */
extern void cfd_promote_updated(Relation relation, ItemPointer old, TupleTableSlot *slot);

#endif
