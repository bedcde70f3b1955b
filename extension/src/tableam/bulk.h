/*
 * bulk.h
 *	  Batching of rows that fill a new table one by one.
 *
 * CREATE TABLE AS, REFRESH MATERIALIZED VIEW and table rewrites by ALTER TABLE
 * insert single rows, do not look at them again, and announce the end of the
 * bulk insert. Their rows are held back, so that the values of many rows are
 * promoted together.
 *
 * Invariants: rows are written in order, and all of them before
 * finish_bulk_insert returns; a transaction with unwritten rows cannot commit.
 */
#ifndef CFD_TABLEAM_BULK_H
#define CFD_TABLEAM_BULK_H

#include "postgres.h"
#include "access/heapam.h"
#include "access/tableam.h"

typedef void (*CfdWriteRows) (Relation relation, TupleTableSlot **slots, int count, CommandId cid, int options,
							  BulkInsertState bistate);

/*
 * Takes a row, which `write` will write later. Returns false if the row is not
 * part of a bulk insert.
 */
extern bool cfd_bulk_take(Relation relation, TupleTableSlot *slot, CommandId cid, int options, BulkInsertState bistate,
						  CfdWriteRows write);
/* The relation gets no more rows: writes those held back. */
extern void cfd_bulk_finish(Relation relation);

#endif
