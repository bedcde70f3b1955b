/*
 * map.h
 *	  Map from values to ranks. It is an array indexed by slot if the
 *	  values are close together in one partition, as those of a column are,
 *	  and a hash table otherwise.
 *
 * Invariant: a value that was not inserted has rank CFD_RANK_BEYOND.
 */
#ifndef CFD_ORDER_MAP_H
#define CFD_ORDER_MAP_H

#include "postgres.h"
#include "wire/wire.h"

/* Range of the values that will be inserted. */
typedef struct CfdMapRange
{
	CfdFid		low;
	CfdFid		high;
	uint32		count;
} CfdMapRange;

typedef struct CfdMap
{
	uint64		first;			/* array: FID of the first entry */
	uint64		span;			/* array: number of entries; hash table: 0 */
	uint64		mask;			/* hash table: number of entries - 1 */
	uint32	   *ranks;
	CfdFid	   *fids;			/* hash table only */
} CfdMap;

static inline void
cfd_map_range_add(CfdMapRange *range, CfdFid fid)
{
	range->low = range->count == 0 ? fid : Min(range->low, fid);
	range->high = range->count == 0 ? fid : Max(range->high, fid);
	range->count++;
}

/* Initialises an empty map for these values. Previous contents must have been freed. */
extern void cfd_map_init(CfdMap *map, MemoryContext context, const CfdMapRange *range);
extern void cfd_map_put(CfdMap *map, CfdFid fid, uint32 rank);
extern void cfd_map_free(CfdMap *map);

static inline uint64
cfd_map_place(const CfdMap *map, CfdFid fid)
{
	uint64		place = ((fid * UINT64CONST(0x9E3779B97F4A7C15)) >> 24) & map->mask;

	while (map->fids[place] != fid && map->fids[place] != 0)
		place = (place + 1) & map->mask;
	return place;
}

/* Has the memory of an array's entry fetched, for a later cfd_map_find. */
static inline void
cfd_map_fetch(const CfdMap *map, CfdFid fid)
{
	if (likely(fid - map->first < map->span))
		__builtin_prefetch(&map->ranks[fid - map->first]);
}

static inline uint32
cfd_map_find(const CfdMap *map, CfdFid fid)
{
	if (likely(fid - map->first < map->span))
		return map->ranks[fid - map->first];
	if (map->fids == NULL)
		return CFD_RANK_BEYOND;
	/* Free entries contain CFD_RANK_BEYOND. */
	return map->ranks[cfd_map_place(map, fid)];
}

#endif
