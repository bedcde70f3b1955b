/*
 * insertion.h
 *	  Promotes a row's values and finds their positions in the indexes that
 *	  the row will be inserted into, in one round trip.
 *
 * Does not insert anything and does not change the row (tableam/slots.c).
 *
 * Invariant: as in search.h and value/promote.h.
 */
#ifndef CFD_INDEX_INSERTION_H
#define CFD_INDEX_INSERTION_H

#include "postgres.h"
#include "executor/tuptable.h"
#include "value/promote.h"

/*
 * Promotes a row's items; numbers[i] is the attribute number - 1 of items[i].
 * Returns false, with nothing promoted, if there is no index to be searched.
 */
extern bool cfd_insertion_promote(Relation table, TupleTableSlot *slot, CfdPromotion *items,
								  const int *numbers, int count);

#endif
