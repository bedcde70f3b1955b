/*
 * sealed.c
 *	  Envelopes of temporary values that fit a column; see sealed.h.
 *
 * There is one list for each arena, in the order of FIDs, which count up. The
 * list of the statement arena is emptied when all its values have been
 * released, each of them when it is full: then rows are promoted as if there
 * were no envelopes.
 *
 * Invariant: as in sealed.h.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/memutils.h"
#include "value/sealed.h"

#define ENTRIES_MAX 4096
#define BYTES_MAX (1024 * 1024)

typedef struct Entry
{
	CfdFid		fid;
	uint32		at;
	uint32		length;
} Entry;

typedef struct SealedList
{
	int			count;
	int			size;
	Entry	   *entries;
	StringInfoData bytes;
} SealedList;

/* By arena. */
static SealedList lists[2];

static void
sealed_make(SealedList *list)
{
	MemoryContext before = MemoryContextSwitchTo(TopMemoryContext);

	if (list->bytes.data == NULL)
		initStringInfo(&list->bytes);
	if (list->entries == NULL)
	{
		list->entries = palloc(16 * sizeof(Entry));
		list->size = 16;
	}
	MemoryContextSwitchTo(before);
}

/* Whether nothing in the list can be asked for any more, or it must make room. */
static bool
sealed_is_over(const SealedList *list, CfdArena arena, CfdFid fid, uint32 length)
{
	CfdFid		last;

	if (list->count == 0)
		return false;
	last = list->entries[list->count - 1].fid;
	return last >= fid || cfd_fid_partition(last) != cfd_fid_partition(fid) ||
		(arena == CFD_STATEMENT && last < cfd_channel.kept) ||
		list->count == ENTRIES_MAX || list->bytes.len + length > BYTES_MAX;
}

void
cfd_sealed_remember(CfdArena arena, CfdFid fid, const unsigned char *envelope, uint32 length)
{
	SealedList *list = &lists[arena];

	if (length > BYTES_MAX)
		return;
	sealed_make(list);
	if (sealed_is_over(list, arena, fid, length))
	{
		list->count = 0;
		resetStringInfo(&list->bytes);
	}
	if (list->count == list->size)
	{
		list->entries = repalloc(list->entries, 2 * list->size * sizeof(Entry));
		list->size *= 2;
	}
	list->entries[list->count] = (Entry) {fid, list->bytes.len, length};
	appendBinaryStringInfo(&list->bytes, (const char *) envelope, length);
	list->count++;
}

bool
cfd_sealed_find(CfdFid fid, CfdSealed *found)
{
	for (int arena = 0; arena < 2; arena++)
	{
		const SealedList *list = &lists[arena];
		int			low = 0;
		int			high = list->count;

		while (low < high)
		{
			int			middle = (low + high) / 2;

			if (list->entries[middle].fid < fid)
				low = middle + 1;
			else
				high = middle;
		}
		if (low < list->count && list->entries[low].fid == fid)
		{
			found->envelope = (const unsigned char *) list->bytes.data + list->entries[low].at;
			found->length = list->entries[low].length;
			return true;
		}
	}
	return false;
}
