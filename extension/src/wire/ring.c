/*
 * ring.c
 *	  Initialisation of one side of a ring; everything else is inline in
 *	  ring.h.
 *
 * Invariant: a new ring is at position 0 on both sides.
 */
#include "postgres.h"

#include "wire/ring.h"

void
cfd_ring_init(CfdRing *ring, char *base, int control, int data, uint64 size)
{
	ring->control = base + control;
	ring->data = base + data;
	ring->size = size;
	ring->mine = 0;
	ring->published = 0;
	ring->announced = 0;
	ring->peer = 0;
	ring->beside_at = 0;
	ring->beside_count = 0;
	ring->besides = 0;
}
