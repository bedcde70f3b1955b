/*
 * batch.h
 *	  Values of many rows of a COPY in one envelope (crates/contract, envelope).
 *
 * The field of a batch's first row brings the envelope; the column's fields after it
 * refer to their values by number. What is known of a column's batch hangs on the
 * FmgrInfo through which COPY reads the column.
 *
 * Invariant: a reference gives a FID of the batch that its own column has got, of
 * the same type, or an error.
 */
#ifndef CFD_VALUE_BATCH_H
#define CFD_VALUE_BATCH_H

#include "postgres.h"
#include "session/channel.h"
#include "fmgr.h"

/* Whether a well-formed envelope is a batch. */
extern bool cfd_is_batch(const unsigned char *envelope);
/* Sends a batch to be stored in new slots; the FID of its first value. */
extern CfdFid cfd_take_batch(FmgrInfo *flinfo, const unsigned char *envelope, size_t length,
							 uint8 type, int32 typmod);
/* The FID of a value of the column's batch; 0 if there is no such value. */
extern CfdFid cfd_of_batch(FmgrInfo *flinfo, uint32 number, uint8 type);
/* Slots from this FID on may belong to rows that were not read yet. */
extern CfdFid cfd_unread(void);

#endif
