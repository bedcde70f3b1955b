/*
 * rows.h
 *	  Copies of the rows of one batch, for plan nodes that return whole
 *	  rows after the keeper has answered.
 *
 * Holds one batch at a time. Does not decide what happens to the rows.
 *
 * Invariant: a batch has at most `room` rows, and ends with the row that makes
 * it larger than CFD_ROWS_BYTES_MAX.
 */
#ifndef CFD_BATCH_ROWS_H
#define CFD_BATCH_ROWS_H

#include "postgres.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"

/* Size limit of a batch's rows in bytes. */
#define CFD_ROWS_BYTES_MAX (512 * 1024)

typedef struct CfdRows
{
	const CustomScanState *node;	/* plan node whose rows these are */
	TupleTableSlot **slots;		/* created on demand */
	int			room;			/* maximum number of rows in a batch */
	int			made;			/* number of slots created */
	Size		bytes;			/* size of the current batch's rows */
} CfdRows;

extern void cfd_rows_init(CfdRows *rows, const CustomScanState *node, int room);

/* Copies `row` as row number `index` of the batch. Returns whether another row fits. */
extern bool cfd_rows_add(CfdRows *rows, int index, TupleTableSlot *row);
extern void cfd_rows_end(CfdRows *rows);

#endif
