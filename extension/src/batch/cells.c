/*
 * cells.c
 *	  Columns of cells; see cells.h.
 *
 * Invariant: as in cells.h.
 */
#include "postgres.h"

#include "batch/cells.h"
#include "compat/compat.h"
#include "fmgr.h"
#include "soft/soft.h"
#include "wire/wire.h"

CfdCells *
cfd_cells_create(void)
{
	CfdCells   *cells = palloc0(sizeof(CfdCells));

	initStringInfo(&cells->bytes);
	return cells;
}

void
cfd_cells_reserve(CfdCells *cells, int rows)
{
	Size		size = Max(rows, 1) * sizeof(uint32);

	cells->ends = cells->ends == NULL ? palloc(size) : repalloc(cells->ends, size);
}

static inline uint32
begin_of(const CfdCells *cells, int row)
{
	return row == 0 ? 0 : cells->ends[row - 1];
}

void
cfd_cells_store(CfdCells *cells, int row, Datum value, bool isnull)
{
	/* Storing row 0 starts a new batch. */
	cells->bytes.len = begin_of(cells, row);
	if (!isnull)
	{
		struct varlena *cell = PG_DETOAST_DATUM_PACKED(value);

		/* The keeper needs no encodings but the sealed value. */
		uint32		sealed = cfd_soft_sealed_bytes(cell);

		appendBinaryStringInfoNT(&cells->bytes, VARDATA_ANY(cell), sealed != 0 ? sealed : VARSIZE_ANY_EXHDR(cell));
		if ((Pointer) cell != DatumGetPointer(value))
			pfree(cell);
	}
	cells->ends[row] = cells->bytes.len;
}

void
cfd_cells_put(const CfdCells *cells, StringInfo body, int from, int rows)
{
	CfdWireColumnHead head = {.form = CFD_COLUMN_CELLS,.count = rows};
	uint32		begin = rows > 0 ? begin_of(cells, from) : 0;

	appendBinaryStringInfo(body, (const char *) &head, sizeof(head));
	if (rows <= 0)
		return;
	for (int row = from; row < from + rows; row++)
	{
		uint32		length = cells->ends[row] - begin_of(cells, row);

		appendBinaryStringInfoNT(body, (const char *) &length, sizeof(length));
	}
	appendBinaryStringInfoNT(body, cells->bytes.data + begin, cells->ends[from + rows - 1] - begin);
}
