/*
 * kept.c
 *	  Table of delivery envelopes in shared memory; see kept.h.
 *
 * The table consists of sets of one kilobyte; an identifier belongs to one of
 * them. The cells of a set are as long as their envelopes need, and stand one
 * after the other. When a set has no room, cells are removed by a clock sweep:
 * a use increments a cell's counter up to a small maximum, and the hand, which
 * goes round the set, decrements it, and removes cells whose counter is 0. A
 * new cell begins with 0, just behind the hand, so a cell that was never used
 * again is removed within one turn, and those that are used often stay.
 *
 * Lengths in shared memory are checked before they are used; the client
 * verifies the envelope itself.
 *
 * Invariants: as in kept.h; a set is accessed under its spinlock only, by code
 * that cannot raise an error; cells fill a set from its start, without gaps.
 */
#include "postgres.h"

#include "value/kept.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/guc.h"

#define SET_BYTES 1024
#define USES_MAX 3
/* By default the table has this part of shared_buffers, as far as the maximum permits. */
#define MEMORY_PART 8
#define MEMORY_MAX (1024 * 1024)

typedef struct Cell
{
	uint64		period;
	CfdFid		fid;
	uint16		length;
	uint8		type;
	uint8		uses;
	char		envelope[FLEXIBLE_ARRAY_MEMBER];
} Cell;

typedef struct Set
{
	slock_t		lock;
	uint32		used;			/* bytes of cells */
	uint32		hand;			/* where the next search for a victim starts */
	char		cells[FLEXIBLE_ARRAY_MEMBER];
} Set;

#define CELLS_AT MAXALIGN(offsetof(Set, cells))
#define CELLS_BYTES (SET_BYTES - CELLS_AT)

static int	memory = -1;
static uint32 sets = 0;			/* number of sets; 0: there is no table */
static char *base;

StaticAssertDecl(MAXALIGN(offsetof(Cell, envelope) + CFD_DELIVERY_KEPT_BYTES) <= CELLS_BYTES,
				 "the longest envelope fits into a set");

static Size
table_bytes(void)
{
	return mul_size(memory, 1024);
}

/* Replaces a size of -1, as is done with wal_buffers. */
static void
choose_memory(void)
{
	char		chosen[32];

	if (memory != -1)
		return;
	snprintf(chosen, sizeof(chosen), "%d",
			 (int) Min((Size) NBuffers * (BLCKSZ / 1024) / MEMORY_PART, MEMORY_MAX));
	SetConfigOption("confide.delivery_memory", chosen, PGC_POSTMASTER, PGC_S_DYNAMIC_DEFAULT);
	/* A -1 in the configuration file goes before a dynamic default. */
	if (memory == -1)
		SetConfigOption("confide.delivery_memory", chosen, PGC_POSTMASTER, PGC_S_OVERRIDE);
}

void
cfd_kept_request_shmem(void)
{
	choose_memory();
	RequestAddinShmemSpace(add_size(table_bytes(), PG_CACHE_LINE_SIZE));
}

static Set *
set_at(uint32 number)
{
	return (Set *) (base + (Size) number * SET_BYTES);
}

void
cfd_kept_init_shmem(void)
{
	Size		bytes = table_bytes();
	bool		found;

	if (bytes == 0)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	base = ShmemInitStruct("confide delivery", bytes + PG_CACHE_LINE_SIZE, &found);
	base = (char *) CACHELINEALIGN(base);
	sets = bytes / SET_BYTES;
	for (uint32 n = 0; !found && n < sets; n++)
	{
		Set		   *set = set_at(n);

		SpinLockInit(&set->lock);
		set->used = set->hand = 0;
	}
	LWLockRelease(AddinShmemInitLock);
}

static Set *
set_of(CfdFid fid)
{
	uint64		hash = fid * UINT64CONST(0x9E3779B97F4A7C15);

	return set_at((uint32) ((hash >> 32) % sets));
}

static uint32
cell_bytes(uint32 length)
{
	return MAXALIGN(offsetof(Cell, envelope) + length);
}

/* The cell at this place. NULL: there is none; a set that makes no sense is emptied. */
static Cell *
cell_at(Set *set, uint32 at)
{
	Cell	   *cell = (Cell *) ((char *) set + CELLS_AT + at);

	if (at >= set->used && set->used <= CELLS_BYTES)
		return NULL;
	if (set->used <= CELLS_BYTES && set->used - at >= cell_bytes(0) &&
		cell->length <= CFD_DELIVERY_KEPT_BYTES && set->used - at >= cell_bytes(cell->length))
		return cell;
	set->used = set->hand = 0;
	return NULL;
}

/* Finds an identifier's cell. Sets *at to its place. */
static Cell *
cell_of(Set *set, CfdFid fid, uint32 *at)
{
	Cell	   *cell;

	for (*at = 0; (cell = cell_at(set, *at)) != NULL; *at += cell_bytes(cell->length))
	{
		if (cell->fid == fid)
			return cell;
	}
	return NULL;
}

static void
remove_cell(Set *set, Cell *cell, uint32 at)
{
	uint32		bytes = cell_bytes(cell->length);

	memmove(cell, (char *) cell + bytes, set->used - at - bytes);
	set->used -= bytes;
	if (set->hand > at)
		set->hand -= bytes;
}

/* Removes cells that are used least, and invalid ones, until there is room. */
static void
kept_make_room(Set *set, uint64 period, uint32 bytes)
{
	while (set->used + bytes > CELLS_BYTES)
	{
		uint32		at = set->hand < set->used ? set->hand : 0;
		Cell	   *cell = cell_at(set, at);

		if (cell == NULL)
			return;
		set->hand = at;
		if (cell->period != period || cell->uses == 0)
			remove_cell(set, cell, at);
		else
		{
			cell->uses--;
			set->hand += cell_bytes(cell->length);
		}
	}
}

void
cfd_kept_put(uint64 period, CfdFid fid, uint8 type, const char *envelope, uint32 length)
{
	uint32		bytes = cell_bytes(length);
	Set		   *set;
	Cell	   *cell;
	uint32		at;

	if (length == 0 || length > CFD_DELIVERY_KEPT_BYTES || sets == 0)
		return;
	set = set_of(fid);
	SpinLockAcquire(&set->lock);
	cell = cell_of(set, fid, &at);
	if (cell != NULL)
		remove_cell(set, cell, at);
	kept_make_room(set, period, bytes);
	at = Min(set->hand, set->used);
	cell = (Cell *) ((char *) set + CELLS_AT + at);
	memmove((char *) cell + bytes, cell, set->used - at);
	set->used += bytes;
	set->hand = at + bytes;
	cell->period = period;
	cell->fid = fid;
	cell->length = length;
	cell->type = type;
	cell->uses = 0;
	memcpy(cell->envelope, envelope, length);
	SpinLockRelease(&set->lock);
}

uint32
cfd_kept_get(uint64 period, CfdFid fid, uint8 type, char *to)
{
	Set		   *set;
	Cell	   *cell;
	uint32		at;
	uint32		length = 0;

	if (sets == 0)
		return 0;
	set = set_of(fid);
	SpinLockAcquire(&set->lock);
	cell = cell_of(set, fid, &at);
	if (cell != NULL && cell->period == period && cell->type == type)
	{
		length = cell->length;
		if (to != NULL)
			memcpy(to, cell->envelope, length);
		if (to != NULL && cell->uses < USES_MAX)
			cell->uses++;
	}
	SpinLockRelease(&set->lock);
	return length;
}

bool
cfd_kept_enabled(void)
{
	return sets != 0;
}

void
cfd_kept_init(void)
{
	DefineCustomIntVariable("confide.delivery_memory",
							"Shared memory for values that were sealed for all clients that may see them.",
							"-1: an eighth of shared_buffers. 0: none are kept.",
							&memory,
							-1, -1, MEMORY_MAX,
							PGC_POSTMASTER,
							GUC_UNIT_KB,
							NULL, NULL, NULL);
}
