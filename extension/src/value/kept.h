/*
 * kept.h
 *	  Table of delivery envelopes in shared memory.
 *
 * Does not decide which envelopes are kept, or who is given them (delivery.h).
 *
 * Invariant: an envelope is found only under the identifier, the type and the
 * period with which it was put in.
 */
#ifndef CFD_VALUE_KEPT_H
#define CFD_VALUE_KEPT_H

#include "postgres.h"
#include "wire/wire.h"

/* Setting confide.delivery_memory. */
extern void cfd_kept_init(void);
extern void cfd_kept_request_shmem(void);
extern void cfd_kept_init_shmem(void);

/* Whether there is a table. */
extern bool cfd_kept_enabled(void);
/* Puts an envelope in. One that is too long is left out. */
extern void cfd_kept_put(uint64 period, CfdFid fid, uint8 type, const char *envelope, uint32 length);
/*
 * Copies an envelope to `to`, which has room for CFD_DELIVERY_KEPT_BYTES;
 * NULL: does not copy, and does not count as a use. Returns its length; 0:
 * there is none.
 */
extern uint32 cfd_kept_get(uint64 period, CfdFid fid, uint8 type, char *to);

#endif
