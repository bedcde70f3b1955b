/*
 * stored.h
 *	  Rows as they lie on their page: attributes at constant offsets are read column
 *	  by column, without taking a row apart, and the rows of a page all at once.
 *
 * Reads; which rows there are, and in which order, the child says: the rest of a page
 * is taken only from a plain sequential scan, which goes on after what was taken.
 * Rows that are not as expected (NULLs, short ones) are left to the child's slot.
 *
 * Invariant: the same rows and values as slot by slot from the child.
 */
#ifndef CFD_BATCH_STORED_H
#define CFD_BATCH_STORED_H

#include "postgres.h"
#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "wire/wire.h"
#include "nodes/execnodes.h"

typedef struct CfdStored
{
	int			last_attribute; /* that is asked for */
	TupleDesc	described;		/* whose offsets are known */
	int			fixed;			/* attributes before the first of varying length */
	int		   *offsets;		/* of these */
	int			count;			/* rows taken, and their attributes' begin */
	const char *rows[MaxHeapTuplesPerPage];
} CfdStored;

extern CfdStored *cfd_stored_create(int last_attribute);
/*
 * Takes the child's row and up to most - 1 that follow on its page. How many: 0 if
 * the row must be read from the slot. They stay until the child is asked again.
 */
extern int	cfd_stored_take(CfdStored *stored, PlanState *child, TupleTableSlot *slot, int most);
/* An attribute of the rows taken. */
extern void cfd_stored_fids(const CfdStored *stored, AttrNumber attribute, CfdFid *out);
extern void cfd_stored_datums(const CfdStored *stored, AttrNumber attribute, Datum *out);
extern void cfd_stored_bools(const CfdStored *stored, AttrNumber attribute, unsigned char *out);

#endif
