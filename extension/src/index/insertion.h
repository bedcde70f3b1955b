/*
 * insertion.h
 *	  A row's values promoted, and placed in the indexes that the row will be inserted into, in one
 *	  round trip.
 *
 * Does not insert anything, nor change the row (tableam/slots.c).
 *
 * Invariant: as in search.h and value/promote.h.
 */
#ifndef CFD_INDEX_INSERTION_H
#define CFD_INDEX_INSERTION_H

#include "postgres.h"
#include "executor/tuptable.h"
#include "value/promote.h"

/* Items, and the numbers of their attributes - 1. False: nothing was promoted, since nothing will be searched. */
extern bool cfd_insertion_promote(Relation table, TupleTableSlot *slot, CfdPromotion *items,
								  const int *numbers, int count);

#endif
