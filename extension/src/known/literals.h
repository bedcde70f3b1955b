/*
 * literals.h
 *	  The same envelope in one message of the client is the same FID, so that
 *	  PostgreSQL sees equal constants as equal (GROUP BY f(x, '...')).
 *
 * Keeps envelopes (ciphertext), never values.
 *
 * Invariant: an entry is found only for the very same bytes, type, modifier and
 * place; all entries go when the message of the client is done or the channel
 * closes.
 */
#ifndef CFD_KNOWN_LITERALS_H
#define CFD_KNOWN_LITERALS_H

#include "postgres.h"
#include "wire/wire.h"

extern CfdFid cfd_cache_find(const char *envelope, uint32 length, uint8 type, int32 typmod, uint8 place);
extern void cfd_cache_add(const char *envelope, uint32 length, uint8 type, int32 typmod,
						  uint8 place, CfdFid fid);
extern void cfd_cache_reset(void);

#endif
