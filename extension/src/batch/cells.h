/*
 * cells.h
 *	  A column of cells (families rnd_ and soft_) to be sent in one message, with which
 *	  the keeper opens all of them; see crates/contract, message/column.rs.
 *
 * Cells are copied unchanged, those of soft_ without their encodings; only
 * the keeper opens them.
 *
 * Invariant: rows are stored in order, starting at 0; a NULL is stored as a
 * cell without bytes.
 */
#ifndef CFD_BATCH_CELLS_H
#define CFD_BATCH_CELLS_H

#include "postgres.h"
#include "lib/stringinfo.h"

/* A batch ends when its cells exceed this size, in bytes. */
#define CFD_CELLS_BYTES (4 * 1024 * 1024)

typedef struct CfdCells
{
	StringInfoData bytes;		/* the cells, concatenated */
	uint32	   *ends;			/* end offset of each row's cell */
} CfdCells;

/* Allocated, together with its cells, in the current memory context. */
extern CfdCells *cfd_cells_create(void);
extern void cfd_cells_reserve(CfdCells *cells, int rows);
extern void cfd_cells_store(CfdCells *cells, int row, Datum value, bool isnull);
extern void cfd_cells_put(const CfdCells *cells, StringInfo body, int from, int rows);

#endif
