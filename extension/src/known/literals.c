/*
 * literals.c
 *	  From envelopes to FIDs: see literals.h.
 *
 * A list with a limit; beyond it, equal envelopes are put twice, which costs time
 * and at worst an error about GROUP BY.
 *
 * Invariant: cfd_cache_reset never raises an error.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "known/literals.h"
#include "utils/memutils.h"

#define ENTRIES_MAX 1024
#define LENGTH_MAX (64 * 1024)

typedef struct Entry
{
	uint64		hash;
	char	   *envelope;
	uint32		length;
	int32		typmod;
	uint8		type;
	uint8		place;
	CfdFid		fid;
} Entry;

static MemoryContext context = NULL;
static Entry entries[ENTRIES_MAX];
static int	count = 0;

static uint64
hash_of(const char *envelope, uint32 length)
{
	return hash_bytes_extended((const unsigned char *) envelope, length, 0);
}

CfdFid
cfd_cache_find(const char *envelope, uint32 length, uint8 type, int32 typmod, uint8 place)
{
	uint64		hash;

	if (count == 0 || length > LENGTH_MAX)
		return 0;
	hash = hash_of(envelope, length);
	for (int i = 0; i < count; i++)
	{
		const Entry *entry = &entries[i];

		if (entry->hash == hash && entry->length == length && entry->type == type &&
			entry->typmod == typmod && entry->place == place &&
			memcmp(entry->envelope, envelope, length) == 0)
			return entry->fid;
	}
	return 0;
}

void
cfd_cache_add(const char *envelope, uint32 length, uint8 type, int32 typmod, uint8 place, CfdFid fid)
{
	char	   *copy;

	if (count >= ENTRIES_MAX || length > LENGTH_MAX)
		return;
	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "confide envelopes", ALLOCSET_DEFAULT_SIZES);
	copy = MemoryContextAlloc(context, length);
	memcpy(copy, envelope, length);
	entries[count++] = (Entry) {
		.hash = hash_of(envelope, length),
		.envelope = copy,
		.length = length,
		.typmod = typmod,
		.type = type,
		.place = place,
		.fid = fid,
	};
}

void
cfd_cache_reset(void)
{
	if (count == 0)
		return;
	count = 0;
	MemoryContextReset(context);
}
