/*
 * set.c
 *	  Messages about sets of rows; see set.h.
 *
 * Invariant: as in set.h.
 */
#include "postgres.h"

#include "order/set.h"
#include "session/channel.h"
#include "wire/columns.h"
#include "miscadmin.h"

/* Sets of the current channel whose Forget message did not fit into the ring. */
#define UNFORGOTTEN_MAX 64

static uint32 unforgotten[UNFORGOTTEN_MAX];
static int	unforgotten_count = 0;
static uint32 unforgotten_generation = 0;
static uint32 last_number = 0;

bool
cfd_set_alive(const CfdSet *set)
{
	return set->number != 0 && cfd_channel.connected && set->generation == cfd_channel.generation;
}

static bool
try_forget(const CfdSet *set)
{
	CfdWireRankForget body = {.set = set->number};

	return cfd_try_send(CFD_KIND_RANK_FORGET, &body, sizeof(body), set->rows > CFD_FEW_VALUES);
}

static void
forget_later(uint32 number)
{
	if (unforgotten_generation != cfd_channel.generation)
		unforgotten_count = 0;
	unforgotten_generation = cfd_channel.generation;
	if (unforgotten_count < UNFORGOTTEN_MAX)
		unforgotten[unforgotten_count++] = number;
}

static void
forget_old(void)
{
	if (unforgotten_generation != cfd_channel.generation)
		unforgotten_count = 0;
	while (unforgotten_count > 0)
	{
		CfdWireRankForget body = {.set = unforgotten[--unforgotten_count]};

		cfd_send(CFD_KIND_RANK_FORGET, &body, sizeof(body), NULL, 0);
	}
}

void
cfd_set_reset(CfdSet *set)
{
	if (cfd_set_alive(set) && !try_forget(set))
		forget_later(set->number);
	set->number = 0;
	set->rows = 0;
}

static void
cfd_set_begin(CfdSet *set)
{
	cfd_begin();
	forget_old();
	last_number = Max(last_number + 1, 1);
	set->number = last_number;
	set->generation = cfd_channel.generation;
	set->rows = 0;
}

static void
add_part(CfdSet *set, const uint64 *words, uint32 rows, uint32 column_stride)
{
	CfdWireRankAdd fixed = {.set = set->number,.columns = set->columns,.rows = rows};
	Size		size = (sizeof(CfdWireRankColumn) + sizeof(uint64) * rows) * set->columns;
	CfdWireRankColumn *columns = palloc0(size);
	uint64	   *values = (uint64 *) (columns + set->columns);

	for (int i = 0; i < set->columns; i++)
	{
		const CfdRankKey *key = &set->keys[i];

		columns[i].t = key->type;
		columns[i].flags =
			(key->descending ? CFD_RANK_DESCENDING : 0) | (key->nulls_first ? CFD_RANK_NULLS_FIRST : 0);
		memcpy(values + (Size) rows * i, words + (Size) column_stride * i, sizeof(uint64) * rows);
	}
	cfd_send(CFD_KIND_RANK_ADD, &fixed, sizeof(fixed), columns, size);
	cfd_after_batch();
	pfree(columns);
	set->rows += rows;
}

void
cfd_set_add(CfdSet *set, const uint64 *words, uint32 rows, uint32 column_stride)
{
	const uint32 part = cfd_batch_rows;

	if (set->number == 0)
		cfd_set_begin(set);
	if (!cfd_set_alive(set))
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("Confide's keeper has lost the rows to be sorted"),
				 errhint("Try the statement again.")));
	for (uint32 at = 0; at < rows; at += part)
	{
		add_part(set, words + at, Min(part, rows - at), column_stride);
		CHECK_FOR_INTERRUPTS();
	}
}

static CfdReadRankAnswer
rank(CfdSet *set, uint32 first, uint32 limit, uint32 flags)
{
	uint32		rows = set->rows - first;
	CfdWireRank body = {.first = first,.limit = limit,.flags = flags};
	CfdReadRankAnswer read;
	const char *answer;
	uint32		length;

	if (!cfd_set_alive(set))
		cfd_set_add(set, NULL, 0, 0);	/* raises the appropriate error */
	body.set = set->number;
	answer = cfd_call(CFD_KIND_RANK, &body, sizeof(body), NULL, 0, &length);
	if (flags & CFD_RANK_GOES)
		set->number = set->rows = 0;
	CFD_DECODE(rank_answer, answer, length, &read);
	if (read.ranks_count != rows || read.steps_length > rows)
		cfd_violation("ranks of the wrong number of rows");
	return read;
}

const uint32 *
cfd_set_rank(CfdSet *set, uint32 first, uint32 limit, bool done)
{
	return (const uint32 *) rank(set, first, limit, done ? CFD_RANK_GOES : 0).ranks;
}

const uint32 *
cfd_set_order(CfdSet *set, const uint8 **steps, uint32 *distinct)
{
	uint32		rows = set->rows;
	CfdReadRankAnswer read = rank(set, 0, 0, CFD_RANK_GOES | CFD_RANK_STEPS);
	const uint32 *ranks = (const uint32 *) read.ranks;

	*distinct = read.steps_length;
	*steps = read.steps;
	for (uint32 i = 0; i < rows; i++)
	{
		if (unlikely(ranks[i] >= *distinct))
			cfd_violation("impossible rank");
	}
	return ranks;
}
