/*
 * cells.h
 *	  A column of cells (family rnd_) on their way into a message, which opens them all: see
 *	  crates/contract, message/column.rs.
 *
 * Copies cells as they are; only the keeper opens them.
 *
 * Invariant: rows are stored in their order, from 0 on; a NULL is a cell without bytes.
 */
#ifndef CFD_BATCH_CELLS_H
#define CFD_BATCH_CELLS_H

#include "postgres.h"
#include "lib/stringinfo.h"

/* A batch with more bytes of cells ends. */
#define CFD_CELLS_BYTES (4 * 1024 * 1024)

typedef struct CfdCells
{
	StringInfoData bytes;		/* the cells, one after the other */
	uint32	   *ends;			/* where each row's ends */
} CfdCells;

/* In the current context, which cells and their room stay in. */
extern CfdCells *cfd_cells_create(void);
extern void cfd_cells_reserve(CfdCells *cells, int rows);
extern void cfd_cells_store(CfdCells *cells, int row, Datum value, bool isnull);
extern void cfd_cells_put(const CfdCells *cells, StringInfo body, int from, int rows);

#endif
