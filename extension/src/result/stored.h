/*
 * stored.h
 *	  Envelopes for results that PostgreSQL stores before it sends them to
 *	  the client (RETURNING, FETCH, EXECUTE, CALL). They are fetched in
 *	  batches, too.
 *
 * Does not change what is stored or the position of the portal.
 *
 * Invariant: envelopes are requested for at most twice the rows that the
 * client reads.
 */
#ifndef CFD_RESULT_STORED_H
#define CFD_RESULT_STORED_H

#include "postgres.h"
#include "wire/wire.h"

/*
 * Gets the envelope of the value being written, if the portal's tuplestore is
 * being sent.
 */
extern bool cfd_stored_envelope(CfdFid fid, uint8 type, const char **envelope, uint32 *length);

#endif
