/*
 * ranks.c
 *	  Announced values and their ranks; see ranks.h.
 *
 * A sort that spills sorts one run after the other and then merges the runs.
 * Therefore the values announced since the last ranking are ranked separately.
 * A comparison of values from two runs ranks all values.
 *
 * Invariant: as in ranks.h; `map` contains the ranks of a single ranking.
 */
#include "postgres.h"

#include "order/map.h"
#include "order/ranks.h"
#include "order/set.h"
#include "utils/memutils.h"

/* Number of values sent in one message; it must not fill the ring. */
#define SEND_ROWS 4096
/* Initial capacity in values. */
#define FIRST_ROOM 64

struct CfdRanks
{
	CfdSource	source;			/* must be first: passed to callbacks as CfdSource */
	CfdScope	known;			/* active while comparison functions use the ranks */
	MemoryContext context;
	MemoryContextCallback at_end;
	CfdSet		set;
	CfdFid	   *fids;			/* announced values */
	uint32		room;
	uint32		count;
	uint32		ranked_from;	/* range of values that `map` covers */
	uint32		ranked_to;
	bool		full;			/* more values than can be ranked */
	CfdMap		map;
};

bool		cfd_enable_bulk_sort = true;
int			cfd_bulk_sort_rows = CFD_RANK_ROWS_MAX;

static void
cfd_ranks_forget(void *arg)
{
	CfdRanks   *ranks = arg;

	cfd_known_end(&ranks->known);
	cfd_set_reset(&ranks->set);
}

static bool
cfd_ranks_find(CfdSource *source, CfdFid a, CfdFid b, int *order)
{
	return cfd_ranks_compare((CfdRanks *) source, a, b, order);
}

void
cfd_ranks_tell(CfdRanks *ranks)
{
	ranks->source = (CfdSource) {.kind = CFD_FACT_ORDER,.order = cfd_ranks_find};
	cfd_known_begin(&ranks->known);
	cfd_known_add_source(&ranks->known, &ranks->source);
}

void
cfd_ranks_tell_no_more(CfdRanks *ranks)
{
	cfd_known_end(&ranks->known);
}

CfdRanks *
cfd_ranks_create(MemoryContext context, uint8 type)
{
	CfdRanks   *ranks = MemoryContextAllocZero(context, sizeof(CfdRanks));

	ranks->context = context;
	ranks->set.columns = 1;
	ranks->set.keys[0].type = type;
	ranks->at_end.func = cfd_ranks_forget;
	ranks->at_end.arg = ranks;
	MemoryContextRegisterResetCallback(context, &ranks->at_end);
	return ranks;
}

static void
cfd_ranks_make_room(CfdRanks *ranks)
{
	uint32		room = Max(ranks->room * 2, FIRST_ROOM);

	if (ranks->fids == NULL)
		ranks->fids = MemoryContextAlloc(ranks->context, sizeof(CfdFid) * room);
	else
		ranks->fids = repalloc_huge(ranks->fids, sizeof(CfdFid) * room);
	ranks->room = room;
}

/* Sends the values that were announced but not sent yet. */
static void
send_new(CfdRanks *ranks)
{
	uint32		sent = ranks->set.rows;

	if (sent < ranks->count)
		cfd_set_add(&ranks->set, ranks->fids + sent, ranks->count - sent, 0);
}

void
cfd_ranks_announce(CfdRanks *ranks, CfdFid fid)
{
	if (ranks->full)
		return;
	if (ranks->count >= (uint32) cfd_bulk_sort_rows)
	{
		ranks->full = true;
		cfd_set_reset(&ranks->set);
		return;
	}
	if (ranks->count == ranks->room)
		cfd_ranks_make_room(ranks);
	ranks->fids[ranks->count++] = fid;
	if (ranks->count - ranks->set.rows >= SEND_ROWS)
		send_new(ranks);
}

/* Ranks the values from `from` on. */
static void
rank_from(CfdRanks *ranks, uint32 from)
{
	CfdMapRange range = {0};
	const uint32 *answer;

	cfd_map_free(&ranks->map);
	send_new(ranks);
	answer = cfd_set_rank(&ranks->set, from, 0, false);
	ranks->ranked_from = from;
	ranks->ranked_to = ranks->count;
	for (uint32 i = from; i < ranks->count; i++)
		cfd_map_range_add(&range, ranks->fids[i]);
	cfd_map_init(&ranks->map, ranks->context, &range);
	for (uint32 i = from; i < ranks->count; i++)
		cfd_map_put(&ranks->map, ranks->fids[i], *answer++);
}

bool
cfd_ranks_compare(CfdRanks *ranks, CfdFid a, CfdFid b, int *order)
{
	for (;;)
	{
		uint32		x = cfd_map_find(&ranks->map, a);
		uint32		y = cfd_map_find(&ranks->map, b);

		if (likely(x != CFD_RANK_BEYOND && y != CFD_RANK_BEYOND))
		{
			*order = (x > y) - (x < y);
			return true;
		}
		if (ranks->full || (ranks->set.number != 0 && !cfd_set_alive(&ranks->set)))
			return false;
		if (ranks->ranked_to < ranks->count)
			rank_from(ranks, ranks->ranked_to);
		else if (ranks->ranked_from > 0)
			rank_from(ranks, 0);
		else
			return false;
	}
}
