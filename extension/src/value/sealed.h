/*
 * sealed.h
 *	  Envelopes of temporary values that the client has fitted to a column, so
 *	  that a row with such a value can be stored without asking the keeper
 *	  (adopt.h).
 *
 * Does not store rows.
 *
 * Invariant: an envelope is found only by the FID under which it was sent to
 * the keeper. A FID is never used again, so what has been forgotten, or was
 * sent on a channel that is closed, is not found.
 */
#ifndef CFD_VALUE_SEALED_H
#define CFD_VALUE_SEALED_H

#include "postgres.h"
#include "session/channel.h"
#include "wire/wire.h"

/* Places in such an envelope: header, column, type modifier, nonce, ciphertext. */
#define CFD_SEALED_COLUMN CFD_ENVELOPE_HEADER_BYTES
#define CFD_SEALED_TYPMOD (CFD_SEALED_COLUMN + CFD_ENVELOPE_COLUMN_BYTES)
#define CFD_SEALED_NONCE (CFD_ENVELOPE_HEADER_BYTES + CFD_ENVELOPE_TARGET_BYTES)
#define CFD_SEALED_CIPHERTEXT (CFD_SEALED_NONCE + CFD_ENVELOPE_NONCE_BYTES)

typedef struct CfdSealed
{
	const unsigned char *envelope;
	uint32		length;
} CfdSealed;

/* Whether a client's envelope is of a value that fits a column. */
static inline bool
cfd_is_fitted(const unsigned char *envelope)
{
	return envelope[1] == CFD_ORIGIN_CLIENT && (envelope[3] & CFD_ENVELOPE_FLAG_FITTED) != 0;
}

static inline uint8
cfd_sealed_type(const CfdSealed *sealed)
{
	return sealed->envelope[2];
}

static inline int32
cfd_sealed_typmod(const CfdSealed *sealed)
{
	return (int32) cfd_get32(sealed->envelope + CFD_SEALED_TYPMOD);
}

/* Remembers a well-formed envelope under the FID that its value was given. */
extern void cfd_sealed_remember(CfdArena arena, CfdFid fid, const unsigned char *envelope, uint32 length);
/* The envelope is valid until the next one is remembered. */
extern bool cfd_sealed_find(CfdFid fid, CfdSealed *found);

#endif
