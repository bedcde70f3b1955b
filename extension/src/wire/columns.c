/*
 * columns.c
 *	  Encoding of a batch's columns; see columns.h.
 *
 * Invariant: the encoded form is the shorter of runs and list.
 */
#include "postgres.h"

#include "wire/columns.h"

int			cfd_batch_rows = CFD_BATCH_ROWS_MAX;

static void
put_head(StringInfo body, uint32 form, uint32 count)
{
	CfdWireColumnHead head = {.form = form,.count = count};

	appendBinaryStringInfo(body, (const char *) &head, sizeof(head));
}

/*
 * Length of the run that starts at the first FID. Sets *stride to 1 if the run
 * counts up, and to 0 if it repeats one FID.
 */
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
	/*
	 * A run ends with its partition: the FID after the last slot belongs to
	 * the next partition.
	 */
	while (n < rows && fids[n] == fids[0] + n && cfd_fid_slot(fids[n]) != 0)
		n++;
	return n;
}

void
cfd_put_column(StringInfo body, const CfdFid *fids, int rows)
{
	int			start = body->len;
	CfdWireColumnHead *head;
	CfdWireColumnRun *run;
	int			limit = rows / 2;
	int			runs = 0;
	int			at = 0;

	enlargeStringInfo(body, sizeof(*head) + Max(rows * sizeof(CfdFid), sizeof(*run)));
	head = (CfdWireColumnHead *) (body->data + start);
	run = (CfdWireColumnRun *) (head + 1);
	while (at < rows && (runs < limit || rows == 1))
	{
		uint32		stride;
		int			length = run_length(fids + at, rows - at, &stride);

		run[runs++] = (CfdWireColumnRun) {.first = fids[at],.length = length,.stride = stride};
		at += length;
	}
	if (at == rows)
	{
		*head = (CfdWireColumnHead) {.form = CFD_COLUMN_RUNS,.count = runs};
		body->len += sizeof(*head) + runs * sizeof(*run);
		return;
	}
	put_head(body, CFD_COLUMN_LIST, rows);
	appendBinaryStringInfo(body, (const char *) fids, rows * sizeof(CfdFid));
}

void
cfd_put_constant(StringInfo body, CfdFid fid, int rows)
{
	put_head(body, CFD_COLUMN_RUNS, rows > 0 ? 1 : 0);
	if (rows > 0)
		appendBinaryStringInfo(body, (const char *) &(CfdWireColumnRun) {.first = fid,.length = rows},
							   sizeof(CfdWireColumnRun));
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

void
cfd_put_raw(StringInfo body, const uint64 *values, const unsigned char *nulls, int rows)
{
	put_head(body, CFD_COLUMN_RAW, rows);
	appendBinaryStringInfo(body, (const char *) values, rows * sizeof(uint64));
	appendBinaryStringInfo(body, (const char *) nulls, rows);
}
