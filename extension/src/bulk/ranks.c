/*
 * ranks.c
 *	  Announced values and their ranks: see ranks.h.
 *
 * A sort that spills sorts one run after the other, then merges. So the values
 * announced since the last ranking are ranked by themselves; a comparison of
 * values of two runs ranks all.
 *
 * Ranks are found by slot where the values lie close together in one partition,
 * as those of a column do, and by hash elsewhere.
 *
 * Invariant: as in ranks.h; `map` holds the ranks of one ranking only.
 */
#include "postgres.h"

#include "bulk/ranks.h"
#include "bulk/set.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

/* Values sent at a time; fewer than fill the ring. */
#define SEND_ROWS 4096
/* Slots per value up to which ranks are found by slot. */
#define SPARSE_MAX 4
#define UNKNOWN CFD_RANK_BEYOND

typedef struct Map
{
	uint64		first;			/* FID of the first entry, if by slot */
	uint64		span;			/* entries, if by slot; else 0 */
	uint64		mask;			/* entries - 1, if by hash */
	uint32	   *ranks;
	CfdFid	   *fids;			/* by hash only */
} Map;

struct CfdRanks
{
	MemoryContext context;
	MemoryContextCallback at_end;
	CfdSet		set;
	CfdFid	   *fids;			/* announced */
	uint32		room;
	uint32		count;
	uint32		ranked_from;	/* values that `map` has */
	uint32		ranked_to;
	bool		full;			/* more values than can be ranked */
	Map			map;
};

bool		cfd_enable_bulk_sort = true;
int			cfd_bulk_sort_rows = CFD_RANK_ROWS_MAX;
CfdRanks   *cfd_ranks_scope = NULL;

static void
forget(void *arg)
{
	CfdRanks   *ranks = arg;

	if (cfd_ranks_scope == ranks)
		cfd_ranks_scope = NULL;
	cfd_set_reset(&ranks->set);
}

CfdRanks *
cfd_ranks_create(MemoryContext context, uint8 type)
{
	CfdRanks   *ranks = MemoryContextAllocZero(context, sizeof(CfdRanks));

	ranks->context = context;
	ranks->set.columns = 1;
	ranks->set.keys[0].type = type;
	ranks->at_end.func = forget;
	ranks->at_end.arg = ranks;
	MemoryContextRegisterResetCallback(context, &ranks->at_end);
	return ranks;
}

static void
make_room(CfdRanks *ranks)
{
	uint32		room = Max(ranks->room * 2, SEND_ROWS);

	if (ranks->fids == NULL)
		ranks->fids = MemoryContextAlloc(ranks->context, sizeof(CfdFid) * room);
	else
		ranks->fids = repalloc_huge(ranks->fids, sizeof(CfdFid) * room);
	ranks->room = room;
}

/* Sends what was announced and not sent. */
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
		make_room(ranks);
	ranks->fids[ranks->count++] = fid;
	if (ranks->count - ranks->set.rows >= SEND_ROWS)
		send_new(ranks);
}

/* ---------- the map ---------- */

static inline uint64
place_of(const Map *map, CfdFid fid)
{
	uint64		place = ((fid * UINT64CONST(0x9E3779B97F4A7C15)) >> 24) & map->mask;

	while (map->fids[place] != fid && map->fids[place] != 0)
		place = (place + 1) & map->mask;
	return place;
}

static inline uint32
find(const Map *map, CfdFid fid)
{
	if (likely(fid - map->first < map->span))
		return map->ranks[fid - map->first];
	if (map->fids == NULL)
		return UNKNOWN;
	/* Free places hold UNKNOWN. */
	return map->ranks[place_of(map, fid)];
}

static void
free_map(Map *map)
{
	if (map->ranks != NULL)
		pfree(map->ranks);
	if (map->fids != NULL)
		pfree(map->fids);
	memset(map, 0, sizeof(*map));
}

static uint32 *
unknown_ranks(MemoryContext context, uint64 count)
{
	Size		size = sizeof(uint32) * count;
	uint32	   *ranks = MemoryContextAllocHuge(context, size);

	memset(ranks, 0xff, size);	/* UNKNOWN */
	return ranks;
}

static void
map_by_slot(CfdRanks *ranks, CfdFid first, uint64 span, const uint32 *answer)
{
	Map		   *map = &ranks->map;

	map->ranks = unknown_ranks(ranks->context, span);
	map->first = first;
	map->span = span;
	for (uint32 i = ranks->ranked_from; i < ranks->ranked_to; i++)
		map->ranks[ranks->fids[i] - first] = *answer++;
}

static void
map_by_hash(CfdRanks *ranks, const uint32 *answer)
{
	Map		   *map = &ranks->map;
	uint64		size = pg_nextpower2_64((uint64) (ranks->ranked_to - ranks->ranked_from) * 2 + 16);

	map->ranks = unknown_ranks(ranks->context, size);
	map->fids = MemoryContextAllocExtended(ranks->context, sizeof(CfdFid) * size,
										   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	map->mask = size - 1;
	for (uint32 i = ranks->ranked_from; i < ranks->ranked_to; i++)
	{
		uint64		place = place_of(map, ranks->fids[i]);

		map->fids[place] = ranks->fids[i];
		map->ranks[place] = *answer++;
	}
}

/* Has the values from `from` on ranked. */
static void
rank_from(CfdRanks *ranks, uint32 from)
{
	const uint32 *answer;
	CfdFid		low = PG_UINT64_MAX;
	CfdFid		high = 0;

	free_map(&ranks->map);
	send_new(ranks);
	answer = cfd_set_rank(&ranks->set, from, 0, false);
	ranks->ranked_from = from;
	ranks->ranked_to = ranks->count;
	for (uint32 i = from; i < ranks->count; i++)
	{
		low = Min(low, ranks->fids[i]);
		high = Max(high, ranks->fids[i]);
	}
	if (high - low <= (uint64) (ranks->count - from) * SPARSE_MAX + SEND_ROWS)
		map_by_slot(ranks, low, high - low + 1, answer);
	else
		map_by_hash(ranks, answer);
}

bool
cfd_ranks_compare(CfdRanks *ranks, CfdFid a, CfdFid b, int *order)
{
	for (;;)
	{
		uint32		x = find(&ranks->map, a);
		uint32		y = find(&ranks->map, b);

		if (likely(x != UNKNOWN && y != UNKNOWN))
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

void
cfd_ranks_complete(CfdRanks *ranks)
{
	if (!ranks->full && ranks->count > 0)
		rank_from(ranks, 0);
}

uint32
cfd_ranks_of(const CfdRanks *ranks, CfdFid fid)
{
	return find(&ranks->map, fid);
}
