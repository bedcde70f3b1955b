/*
 * ring.h
 *	  The two byte rings of a channel, seen from the backend: writer of
 *	  requests, reader of answers.
 *
 * Moves bytes that fit and positions; does not wait, wake or interpret. The
 * protocol of positions and sleep flags is told in crates/contract, ring.rs.
 *
 * Invariants: a side never reads its own position back from shared memory; the
 * peer's position is checked each time it is loaded (a false result means that
 * the peer broke the contract); every access stays inside the mapping.
 */
#ifndef CFD_RING_H
#define CFD_RING_H

#include "postgres.h"
#include "channel/wire.h"

typedef struct CfdRing
{
	char	   *control;
	char	   *data;
	uint64		size;			/* a power of two */
	uint64		mine;			/* own position, in bytes since the start */
	uint64		published;		/* own position as the peer sees it */
	uint64		peer;			/* the peer's position as last loaded */
} CfdRing;

#define CFD_WORD64(ring, offset) ((uint64 *) ((ring)->control + (offset)))
#define CFD_WORD32(ring, offset) ((uint32 *) ((ring)->control + (offset)))

/* A side publishes its position at the latest after this part of the ring. */
#define CFD_PUBLISH_PART(ring) ((ring)->size / 4)

static inline void
cfd_ring_sleeps(CfdRing *ring, int flag, bool sleeps)
{
	__atomic_store_n(CFD_WORD32(ring, flag), sleeps ? 1 : 0, __ATOMIC_RELAXED);
}

/*
 * Publishes the own position. True: the peer sleeps and must be woken.
 */
static inline bool
cfd_ring_publish(CfdRing *ring, int position, int peer_flag)
{
	if (ring->published == ring->mine)
		return false;
	ring->published = ring->mine;
	__atomic_store_n(CFD_WORD64(ring, position), ring->mine, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (likely(__atomic_load_n(CFD_WORD32(ring, peer_flag), __ATOMIC_RELAXED) == 0))
		return false;
	cfd_ring_sleeps(ring, peer_flag, false);
	return true;
}

/* Writer: bytes that can be put now, as far as we know. */
static inline uint64
cfd_ring_room(const CfdRing *ring)
{
	return ring->size - (ring->mine - ring->peer);
}

/* Writer: looks at the reader's position. */
static inline bool
cfd_ring_refresh_room(CfdRing *ring)
{
	uint64		read = __atomic_load_n(CFD_WORD64(ring, CFD_CONTROL_READ), __ATOMIC_ACQUIRE);

	if (read < ring->peer || read > ring->mine)
		return false;
	ring->peer = read;
	return true;
}

/* Writer: puts bytes for which there is room. */
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

/* Reader: bytes that can be taken now, as far as we know. */
static inline uint64
cfd_ring_available(const CfdRing *ring)
{
	return ring->peer - ring->mine;
}

/* Reader: looks at the writer's position. */
static inline bool
cfd_ring_refresh_available(CfdRing *ring)
{
	uint64		written = __atomic_load_n(CFD_WORD64(ring, CFD_CONTROL_WRITTEN), __ATOMIC_ACQUIRE);

	if (written < ring->peer || written - ring->mine > ring->size)
		return false;
	ring->peer = written;
	return true;
}

/* Reader: takes bytes that are available; "to" may be NULL. */
static inline void
cfd_ring_take(CfdRing *ring, void *to, uint64 length)
{
	uint64		offset = ring->mine & (ring->size - 1);
	uint64		first = Min(length, ring->size - offset);

	if (to != NULL)
	{
		memcpy(to, ring->data + offset, first);
		if (unlikely(first < length))
			memcpy((char *) to + first, ring->data, length - first);
	}
	ring->mine += length;
}

extern void cfd_ring_init(CfdRing *ring, char *base, int control, int data, uint64 size);

#endif
