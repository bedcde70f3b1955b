/*
 * stored.h
 *	  Results that PostgreSQL has put aside before it writes them to the client (of
 *	  RETURNING, FETCH, EXECUTE, CALL): their envelopes are asked for together, too.
 *
 * Does not change what is stored, nor how far it has been read.
 *
 * Invariant: never more than twice the rows that the client reads are asked for.
 */
#ifndef CFD_RESULT_STORED_H
#define CFD_RESULT_STORED_H

#include "postgres.h"
#include "wire/wire.h"

/* The envelope of the value that is written now, if a portal's store is being written. */
extern bool cfd_stored_envelope(CfdFid fid, uint8 type, const char **envelope, uint32 *length);

#endif
