/*
 * slots.h
 *	  Prepares rows to be written: finds the FIDs that do not belong to the columns' partitions
 *	  and replaces them with permanent ones.
 *
 * Does not write rows.
 *
 * The caller calls cfd_unpin_writer once the rows are on their pages; until then garbage collection
 * waits.
 *
 * Invariant: afterwards every FID in the slots belongs to its column's partition, and the slots are
 * otherwise unchanged, so indexes and heap see the same values.
 */
#ifndef CFD_TABLEAM_SLOTS_H
#define CFD_TABLEAM_SLOTS_H

#include "postgres.h"
#include "executor/tuptable.h"
#include "nodes/pg_list.h"
#include "utils/relcache.h"

/*
 * The slots' columns are written to the attributes with these numbers; NIL: the relation's own
 * columns.
 */
extern void cfd_promote_slots(Relation relation, const List *numbers, TupleTableSlot **slots, int count);

/* For a row to be inserted: also searches its indexes. */
extern void cfd_promote_inserted(Relation relation, TupleTableSlot *slot);
/* For a new version of a row: also searches its indexes, if it will need entries there. */
extern void cfd_promote_updated(Relation relation, ItemPointer old, TupleTableSlot *slot);

#endif
