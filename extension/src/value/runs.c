/*
 * runs.c
 *	  Promotion of the values of many rows: see runs.h.
 *
 * The values of a column in a batch of COPY have consecutive temporary FIDs, and get
 * consecutive permanent ones: both go over the channel as runs.
 *
 * Invariant: a permanent FID that we accept is in the partition we asked for.
 */
#include "postgres.h"

#include "session/channel.h"
#include "lib/stringinfo.h"
#include "value/runs.h"
#include "session/gate.h"

#define COLUMN_HEAD_BYTES 8
#define RUN_BYTES 16
#define ANSWER_HEAD_BYTES 8

/* An answer that is being read. */
typedef struct Reader
{
	const char *at;
	const char *end;
} Reader;

static const char *
cfd_runs_take(Reader *reader, size_t bytes)
{
	const char *at = reader->at;

	if ((size_t) (reader->end - at) < bytes)
		cfd_violation("answer to a promotion is too short");
	reader->at += bytes;
	return at;
}

static void
cfd_runs_put_run(StringInfo body, CfdFid first, uint32 length)
{
	char		run[RUN_BYTES] = {0};

	cfd_put64(run, first);
	cfd_put32(run + 8, length);
	appendBinaryStringInfo(body, run, sizeof(run));
}

/* Appends the runs of a column; how many values they have. */
static uint32
cfd_runs_put_column(StringInfo body, uint32 partition, const CfdFid *fids, int rows)
{
	int			head = body->len;
	uint32		runs = 0;
	uint32		values = 0;
	CfdFid		first = 0;
	uint32		length = 0;

	appendStringInfoSpaces(body, COLUMN_HEAD_BYTES);
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
		runs++;
		first = fids[i];
		length = 1;
	}
	if (length > 0)
		cfd_runs_put_run(body, first, length);
	cfd_put32(body->data + head, partition);
	cfd_put32(body->data + head + 4, runs);
	return values;
}

/* Puts the permanent FIDs of a column in the place of those that were promoted. */
static void
take_column(Reader *reader, uint32 partition, CfdFid *fids, int rows)
{
	uint32		runs = cfd_get32(cfd_runs_take(reader, COLUMN_HEAD_BYTES));
	CfdFid		next = 0;
	uint32		left = 0;

	for (int i = 0; i < rows; i++)
	{
		if (fids[i] == 0)
			continue;
		if (left == 0)
		{
			const char *run;

			if (runs == 0)
				cfd_violation("answer to a promotion lacks values");
			runs--;
			run = cfd_runs_take(reader, RUN_BYTES);
			next = cfd_get64(run);
			left = cfd_get32(run + 8);
			if (left == 0 || cfd_fid_partition(next) != partition ||
				cfd_fid_partition(next + left - 1) != partition)
				cfd_violation("promoted into another partition");
		}
		fids[i] = next++;
		left--;
	}
	if (left > 0 || runs > 0)
		cfd_violation("answer to a promotion has too many values");
}

bool
cfd_promote_runs(Relation relation, const CfdColumns *columns, CfdFid *fids, int rows)
{
	unsigned char head[CFD_FIXED_PROMOTE_RUNS];
	StringInfoData body;
	const char *answer;
	uint32		length;
	uint32		values = 0;
	Reader		reader;

	cfd_state_need_fids();
	initStringInfo(&body);
	for (int n = 0; n < columns->count; n++)
		values += cfd_runs_put_column(&body, columns->column[n].partition, fids + (size_t) n * rows, rows);
	cfd_put32(head, columns->count);
	cfd_put32(head + 4, values);
	answer = cfd_call(CFD_KIND_PROMOTE_RUNS, head, sizeof(head), body.data, body.len, &length);
	pfree(body.data);
	reader = (Reader) {.at = answer, .end = answer + length};
	if (cfd_get32(cfd_runs_take(&reader, ANSWER_HEAD_BYTES)) == 0)
		return false;
	for (int n = 0; n < columns->count; n++)
		take_column(&reader, columns->column[n].partition, fids + (size_t) n * rows, rows);
	cfd_log_promotion(relation, reader.at, reader.end - reader.at);
	return true;
}
