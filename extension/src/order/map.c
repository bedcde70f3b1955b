/*
 * map.c
 *	  Map from values to ranks; see map.h.
 *
 * Invariant: as in map.h.
 */
#include "postgres.h"

#include "order/map.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

/* An array is used up to SPARSE_MAX slots per value plus FEW slots. */
#define SPARSE_MAX 4
#define FEW 4096

static uint32 *
unknown_ranks(MemoryContext context, uint64 count)
{
	Size		size = sizeof(uint32) * count;
	uint32	   *ranks = MemoryContextAllocHuge(context, size);

	memset(ranks, 0xff, size);	/* CFD_RANK_BEYOND */
	return ranks;
}

void
cfd_map_init(CfdMap *map, MemoryContext context, const CfdMapRange *range)
{
	uint64		size;

	memset(map, 0, sizeof(*map));
	if (range->count == 0)
		return;
	if (range->high - range->low <= (uint64) range->count * SPARSE_MAX + FEW)
	{
		map->first = range->low;
		map->span = range->high - range->low + 1;
		map->ranks = unknown_ranks(context, map->span);
		return;
	}
	size = pg_nextpower2_64((uint64) range->count * 2 + 16);
	map->ranks = unknown_ranks(context, size);
	map->fids = MemoryContextAllocExtended(context, sizeof(CfdFid) * size,
										   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	map->mask = size - 1;
}

void
cfd_map_put(CfdMap *map, CfdFid fid, uint32 rank)
{
	uint64		place = fid - map->first;

	if (place >= map->span)
	{
		place = cfd_map_place(map, fid);
		map->fids[place] = fid;
	}
	map->ranks[place] = rank;
}

void
cfd_map_free(CfdMap *map)
{
	if (map->ranks != NULL)
		pfree(map->ranks);
	if (map->fids != NULL)
		pfree(map->fids);
	memset(map, 0, sizeof(*map));
}
