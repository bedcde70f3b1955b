/*
 * columns.c
 *	  Columns of a batch: see columns.h.
 *
 * Invariant: as in columns.h.
 */
#include "postgres.h"

#include "wire/columns.h"

int			cfd_batch_rows = CFD_BATCH_ROWS_MAX;

static void
put_head(StringInfo body, uint32 form, uint32 count)
{
	enlargeStringInfo(body, 8);
	cfd_put32(body->data + body->len, form);
	cfd_put32(body->data + body->len + 4, count);
	body->len += 8;
}

static inline void
cfd_columns_put_run(char *at, CfdFid first, uint32 length, uint32 stride)
{
	cfd_put64(at, first);
	cfd_put32(at + 8, length);
	cfd_put32(at + 12, stride);
}

/* Rows of the run that begins with the first FID; whether they count up. */
static inline int
run_length(const CfdFid *fids, int rows, uint32 *stride)
{
	int			n = 1;

	*stride = 0;
	if (rows == 1)
		return 1;
	if (fids[1] == fids[0])
	{
		while (n < rows && fids[n] == fids[0])
			n++;
		return n;
	}
	if (fids[0] == 0 || fids[1] != fids[0] + 1)
		return 1;
	*stride = 1;
	/* A partition's last slot is followed by another partition's first: no run. */
	while (n < rows && fids[n] == fids[0] + n && cfd_fid_slot(fids[n]) != 0)
		n++;
	return n;
}

void
cfd_put_column(StringInfo body, const CfdFid *fids, int rows)
{
	int			start = body->len;
	int			limit = rows / 2;
	int			runs = 0;
	int			at = 0;

	enlargeStringInfo(body, 8 + Max(rows * sizeof(CfdFid), CFD_COLUMN_RUN_BYTES));
	put_head(body, CFD_COLUMN_RUNS, 0);
	while (at < rows && (runs < limit || rows == 1))
	{
		uint32		stride;
		int			length = run_length(fids + at, rows - at, &stride);

		cfd_columns_put_run(body->data + body->len, fids[at], length, stride);
		body->len += CFD_COLUMN_RUN_BYTES;
		at += length;
		runs++;
	}
	if (at == rows)
	{
		cfd_put32(body->data + start + 4, runs);
		return;
	}
	body->len = start;
	put_head(body, CFD_COLUMN_LIST, rows);
	appendBinaryStringInfo(body, (const char *) fids, rows * sizeof(CfdFid));
}

void
cfd_put_constant(StringInfo body, CfdFid fid, int rows)
{
	put_head(body, CFD_COLUMN_RUNS, rows > 0 ? 1 : 0);
	if (rows == 0)
		return;
	enlargeStringInfo(body, CFD_COLUMN_RUN_BYTES);
	cfd_columns_put_run(body->data + body->len, fid, rows, 0);
	body->len += CFD_COLUMN_RUN_BYTES;
}

void
cfd_put_values(StringInfo body, const CfdFid *fids, int count)
{
	put_head(body, CFD_COLUMN_VALUES, count);
	appendBinaryStringInfo(body, (const char *) fids, count * sizeof(CfdFid));
}

void
cfd_put_bools(StringInfo body, const unsigned char *bools, int rows)
{
	put_head(body, CFD_COLUMN_BOOLS, rows);
	appendBinaryStringInfo(body, (const char *) bools, rows);
}
