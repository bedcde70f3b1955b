/*
 * rows.h
 *	  The rows of a batch, copied into slots of their own: for nodes that give out whole rows once the
 *	  keeper has answered. One batch at a time; what becomes of the rows is the node's affair.
 *
 * Invariant: a batch has at most `room` rows, and ends with the row that makes it larger than CFD_ROWS_BYTES_MAX.
 */
#ifndef CFD_BATCH_ROWS_H
#define CFD_BATCH_ROWS_H

#include "postgres.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"

/* Bytes of a batch's rows. */
#define CFD_ROWS_BYTES_MAX (512 * 1024)

typedef struct CfdRows
{
	const CustomScanState *node;	/* whose rows they are */
	TupleTableSlot **slots;		/* made when they are needed */
	int			room;			/* rows of a batch at most */
	int			made;			/* slots */
	Size		bytes;			/* of the batch's rows */
} CfdRows;

extern void cfd_rows_init(CfdRows *rows, const CustomScanState *node, int room);

/* Copies `row` as row number `index` of the batch. Returns whether there is room for another. */
extern bool cfd_rows_add(CfdRows *rows, int index, TupleTableSlot *row);
extern void cfd_rows_end(CfdRows *rows);

#endif
