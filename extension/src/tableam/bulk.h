/*
 * bulk.h
 *	  Rows that fill a new table one by one, written by the batch.
 *
 * CREATE TABLE AS, REFRESH MATERIALIZED VIEW and ALTER TABLE, where it writes a table anew, give
 * the access method a row at a time, look at it no more, and say when they are done. Their rows are
 * held back, so that values of many are promoted together.
 *
 * Invariants: rows are written in their order, all of them before the access method's caller
 * hears that the bulk insert is finished; a transaction that would leave some does not commit.
 */
#ifndef CFD_TABLEAM_BULK_H
#define CFD_TABLEAM_BULK_H

#include "postgres.h"
#include "access/heapam.h"
#include "access/tableam.h"

typedef void (*CfdWriteRows) (Relation relation, TupleTableSlot **slots, int count, CommandId cid, int options,
							  BulkInsertState bistate);

/* Takes a row, which will be written by `write`. False: it is not one of a bulk insert. */
extern bool cfd_bulk_take(Relation relation, TupleTableSlot *slot, CommandId cid, int options, BulkInsertState bistate,
						  CfdWriteRows write);
/* The relation gets no more rows. */
extern void cfd_bulk_finish(Relation relation);

#endif
