/*
 * ring.h
 *	  The two byte rings of a channel as the backend sees them: it writes
 *	  requests and reads answers.
 *
 * Moves bytes and positions. Does not wait, wake the peer or interpret
 * messages. The protocol (positions, inline bytes stored beside a position,
 * sleep flags) is described in crates/contract, ring.rs.
 *
 * Invariants: a side never reads its own position back from shared memory; the
 * peer's position is checked each time it is loaded, and a false result means
 * that the peer broke the protocol; every access stays inside the mapping.
 */
#ifndef CFD_WIRE_RING_H
#define CFD_WIRE_RING_H

#include "postgres.h"
#include "wire/wire.h"

typedef struct CfdRing
{
	char	   *control;
	char	   *data;
	uint64		size;			/* a power of two */
	uint64		mine;			/* own position, in bytes since the ring was created */
	uint64		published;		/* own position as last stored for the peer */
	uint64		announced;		/* own position when the peer was last known to be awake */
	uint64		peer;			/* the peer's position as last loaded */
	/* Reader: a copy of the inline bytes, and the position where they start. */
	uint64		beside_at;
	uint64		beside_count;
	uint64		beside[CFD_BESIDE_WORDS];
	/* Writer: number of messages that were sent inline. */
	uint64		besides;
} CfdRing;

/* Mask for the part of a word below its tag. */
#define CFD_BELOW_TAG ((UINT64CONST(1) << CFD_TAG_SHIFT) - 1)
/* Largest message that can be sent inline, in bytes. */
#define CFD_SMALL_BYTES (8 * CFD_BESIDE_WORDS)

#define CFD_WORD64(ring, offset) ((uint64 *) ((ring)->control + (offset)))
#define CFD_WORD32(ring, offset) ((uint32 *) ((ring)->control + (offset)))

/* A side publishes its position at least once per this many bytes. */
#define CFD_PUBLISH_PART(ring) ((ring)->size / 4)

static inline void
cfd_ring_sleeps(CfdRing *ring, int flag, bool sleeps)
{
	__atomic_store_n(CFD_WORD32(ring, flag), sleeps ? 1 : 0, __ATOMIC_RELAXED);
}

/*
 * Stores the own position, with a tag, where the peer reads it. Returns true
 * if the peer sleeps; the caller must then wake it.
 */
static inline bool
cfd_ring_publish_with(CfdRing *ring, int position, int peer_flag, uint64 tag)
{
	ring->published = ring->announced = ring->mine;
	__atomic_store_n(CFD_WORD64(ring, position), (ring->mine & CFD_BELOW_TAG) | tag, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (likely(__atomic_load_n(CFD_WORD32(ring, peer_flag), __ATOMIC_RELAXED) == 0))
		return false;
	cfd_ring_sleeps(ring, peer_flag, false);
	return true;
}

static inline bool
cfd_ring_publish(CfdRing *ring, int position, int peer_flag)
{
	if (ring->announced == ring->mine)
		return false;
	return cfd_ring_publish_with(ring, position, peer_flag, 0);
}

/*
 * Stores the own position without looking at the peer's sleep flag. A sleeping
 * peer sees it when it is next woken.
 */
static inline void
cfd_ring_publish_quietly(CfdRing *ring, int position)
{
	ring->published = ring->mine;
	__atomic_store_n(CFD_WORD64(ring, position), ring->mine & CFD_BELOW_TAG, __ATOMIC_RELEASE);
}

/* Writer: free bytes, judged by the reader's position as last loaded. */
static inline uint64
cfd_ring_room(const CfdRing *ring)
{
	return ring->size - (ring->mine - ring->peer);
}

/* Writer: loads the reader's position. Returns false if it is impossible. */
static inline bool
cfd_ring_refresh_room(CfdRing *ring)
{
	uint64		read = __atomic_load_n(CFD_WORD64(ring, CFD_CONTROL_READ), __ATOMIC_ACQUIRE);

	if (read < ring->peer || read > ring->mine)
		return false;
	ring->peer = read;
	return true;
}

/* Writer: copies bytes into the ring. The caller has checked that there is room. */
static inline void
cfd_ring_put(CfdRing *ring, const void *bytes, uint64 length)
{
	uint64		offset = ring->mine & (ring->size - 1);
	uint64		first = Min(length, ring->size - offset);

	memcpy(ring->data + offset, bytes, first);
	if (unlikely(first < length))
		memcpy(ring->data, (const char *) bytes + first, length - first);
	ring->mine += length;
}

/*
 * Writer: publishes a message that is in the ring already, and stores a copy
 * of it inline. The message must be the only one since the last publication.
 * "bytes" holds "count" bytes, padded with zeros to whole words.
 */
static inline bool
cfd_ring_publish_beside(CfdRing *ring, const uint64 *bytes, uint64 count)
{
	uint64	   *beside = CFD_WORD64(ring, CFD_CONTROL_BESIDE);
	uint64		tag = (count | (++ring->besides & 3) << 6) << CFD_TAG_SHIFT;
	uint64		before = 0;

	/* A reader that sees one of these words also sees everything published before. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (int n = 0; n < CFD_BESIDE_WORDS; n++)
	{
		uint64		low = n == 0 ? 0 : before >> (64 - 8 * n);
		uint64		word = (bytes[n] << (8 * n) | low) & CFD_BELOW_TAG;

		before = bytes[n];
		__atomic_store_n(beside + n, word | tag, __ATOMIC_RELAXED);
	}
	return cfd_ring_publish_with(ring, CFD_CONTROL_WRITTEN, CFD_CONTROL_READER_SLEEPS, tag);
}

/*
 * Reader: copies the inline bytes, unless the writer changes them meanwhile.
 * In that case the reader takes them from the ring.
 */
static inline void
cfd_ring_copy_beside(CfdRing *ring, uint64 word, uint64 count)
{
	uint64	   *beside = CFD_WORD64(ring, CFD_CONTROL_BESIDE);
	uint64		words[CFD_BESIDE_WORDS + 1];
	uint64		other = 0;

	ring->beside_count = 0;
	for (int n = 0; n < CFD_BESIDE_WORDS; n++)
	{
		words[n] = __atomic_load_n(beside + n, __ATOMIC_RELAXED);
		other |= (words[n] ^ word) & ~CFD_BELOW_TAG;
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (other != 0 || __atomic_load_n(CFD_WORD64(ring, CFD_CONTROL_WRITTEN), __ATOMIC_RELAXED) != word)
		return;
	words[CFD_BESIDE_WORDS] = 0;
	for (int n = 0; n < CFD_BESIDE_WORDS; n++)
		ring->beside[n] = (words[n] & CFD_BELOW_TAG) >> (8 * n) |
			words[n + 1] << (CFD_TAG_SHIFT - 8 * n);
	ring->beside_at = ring->mine;
	ring->beside_count = count;
}

/* Reader: readable bytes, judged by the writer's position as last loaded. */
static inline uint64
cfd_ring_available(const CfdRing *ring)
{
	return ring->peer - ring->mine;
}

/* Reader: loads the writer's position. Returns false if it is impossible. */
static inline bool
cfd_ring_refresh_available(CfdRing *ring)
{
	uint64		word = __atomic_load_n(CFD_WORD64(ring, CFD_CONTROL_WRITTEN), __ATOMIC_ACQUIRE);
	uint64		written = word & CFD_BELOW_TAG;
	uint64		beside = word >> CFD_TAG_SHIFT & CFD_TAG_BYTES;

	if (written < ring->peer || written - ring->mine > ring->size || beside > CFD_BESIDE_BYTES)
		return false;
	if (beside > 0 && written > ring->peer && written - ring->mine == beside)
		cfd_ring_copy_beside(ring, word, beside);
	ring->peer = written;
	return true;
}

/* Reader: takes bytes that are available. "to" may be NULL to skip them. */
static inline void
cfd_ring_take(CfdRing *ring, void *to, uint64 length)
{
	uint64		offset = ring->mine & (ring->size - 1);
	uint64		first = Min(length, ring->size - offset);
	uint64		skip = ring->mine - ring->beside_at;

	if (to != NULL && skip < ring->beside_count && length <= ring->beside_count - skip)
		memcpy(to, (const char *) ring->beside + skip, length);
	else if (to != NULL)
	{
		memcpy(to, ring->data + offset, first);
		if (unlikely(first < length))
			memcpy((char *) to + first, ring->data, length - first);
	}
	ring->mine += length;
}

extern void cfd_ring_init(CfdRing *ring, char *base, int control, int data, uint64 size);

#endif
