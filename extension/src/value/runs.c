/*
 * runs.c
 *	  Promotion of the values of many rows; see runs.h.
 *
 * The values of a column in a COPY batch have consecutive temporary FIDs and
 * get consecutive permanent ones, so both are sent as runs.
 *
 * Invariant: every permanent FID that we accept is in the partition we asked
 * for.
 */
#include "postgres.h"

#include "session/channel.h"
#include "lib/stringinfo.h"
#include "value/runs.h"
#include "session/gate.h"

static void
cfd_runs_put_run(StringInfo body, CfdFid first, uint32 length)
{
	CfdWireRun	run = {.first = first,.length = length};

	appendBinaryStringInfo(body, (const char *) &run, sizeof(run));
}

/* Appends the runs of a column. Returns the number of values in them. */
static uint32
cfd_runs_put_column(StringInfo body, uint32 partition, const CfdFid *fids, int rows)
{
	CfdWireColumnRuns head = {.partition = partition};
	int			start = body->len;
	uint32		values = 0;
	CfdFid		first = 0;
	uint32		length = 0;

	appendBinaryStringInfo(body, (const char *) &head, sizeof(head));
	for (int i = 0; i < rows; i++)
	{
		if (fids[i] == 0)
			continue;
		values++;
		if (length > 0 && fids[i] == first + length)
		{
			length++;
			continue;
		}
		if (length > 0)
			cfd_runs_put_run(body, first, length);
		head.count++;
		first = fids[i];
		length = 1;
	}
	if (length > 0)
		cfd_runs_put_run(body, first, length);
	memcpy(body->data + start, &head, sizeof(head));
	return values;
}

/* Replaces the promoted FIDs of a column by the permanent ones. */
static void
take_column(CfdReader *reader, uint32 partition, CfdFid *fids, int rows)
{
	CfdReadColumnRuns column;
	uint64		run = 0;
	CfdFid		next = 0;
	uint32		left = 0;

	if (!cfd_read_column_runs(reader, &column))
		cfd_violation("answer to a promotion lacks a column");
	for (int i = 0; i < rows; i++)
	{
		if (fids[i] == 0)
			continue;
		if (left == 0)
		{
			if (run == column.runs_count)
				cfd_violation("answer to a promotion lacks values");
			next = column.runs[run].first;
			left = column.runs[run++].length;
			if (left == 0 || cfd_fid_partition(next) != partition ||
				cfd_fid_partition(next + left - 1) != partition)
				cfd_violation("promoted into another partition");
		}
		fids[i] = next++;
		left--;
	}
	if (left > 0 || run < column.runs_count)
		cfd_violation("answer to a promotion has too many values");
}

bool
cfd_promote_runs(Relation relation, const CfdColumns *columns, CfdFid *fids, int rows)
{
	CfdWirePromoteRuns head = {.columns = columns->count};
	CfdReadPromoteRunsAnswer read;
	StringInfoData body;
	const char *answer;
	uint32		length;

	cfd_state_need_fids();
	initStringInfo(&body);
	for (int n = 0; n < columns->count; n++)
		head.values += cfd_runs_put_column(&body, columns->column[n].partition, fids + (size_t) n * rows, rows);
	answer = cfd_call(CFD_KIND_PROMOTE_RUNS, &head, sizeof(head), body.data, body.len, &length);
	pfree(body.data);
	CFD_DECODE(promote_runs_answer, answer, length, &read);
	if (read.head.promoted == 0)
		return false;
	for (int n = 0; n < columns->count; n++)
		take_column(&read.runs, columns->column[n].partition, fids + (size_t) n * rows, rows);
	cfd_log_promotion(relation, (const char *) read.record, read.record_length);
	return true;
}
