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
#include "generated/messages.h"
#include "nodes/pg_list.h"
#include "utils/relcache.h"

/*
 * The slots' columns are written to the attributes with these numbers; NIL: the relation's own
 * columns.
 */
extern void cfd_promote_slots(Relation relation, const List *numbers, TupleTableSlot **slots, int count);

/* For a row to be inserted: also searches its indexes. */
extern void cfd_promote_inserted(Relation relation, TupleTableSlot *slot);
/*
 * For a new version of a row: also searches its indexes, if it will need entries there. "follower" is
 * a row of another relation that will be written next, or NULL. Its values are promoted at the same
 * time, if that takes no message of its own; else when it is inserted.
 */
extern void cfd_promote_updated(Relation relation, ItemPointer old, TupleTableSlot *slot, Relation other,
								TupleTableSlot *follower);

/* The most values of a row that cfd_lease_values takes. */
#define CFD_LEASED_VALUES_MAX 64
/*
 * Gives leased FIDs to a row's values, which are other columns' now, and tells which FID each had and
 * which it has. Returns their number; 0, with nothing done, if they have to be promoted. The caller
 * sends the values to the keeper.
 */
extern int	cfd_lease_values(Relation relation, TupleTableSlot *slot, CfdWireMoved *moved);

#endif
