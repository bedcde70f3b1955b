/*
 * batch.h
 *	  Values of many rows of a COPY in one envelope (crates/contract,
 *	  envelope).
 *
 * The envelope is in the field of a batch's first row; the fields of the same
 * column in the following rows refer to its values by number. The state of a
 * column's batch is attached to the FmgrInfo that COPY uses for the column.
 *
 * Invariant: a reference yields a FID from the batch of its own column and
 * type, or an error.
 */
#ifndef CFD_VALUE_BATCH_H
#define CFD_VALUE_BATCH_H

#include "postgres.h"
#include "session/channel.h"
#include "fmgr.h"

/* Whether a well-formed envelope is a batch. */
extern bool cfd_is_batch(const unsigned char *envelope);
/* Has the keeper store a batch in new slots, and returns the FID of its first value. */
extern CfdFid cfd_take_batch(FmgrInfo *flinfo, const unsigned char *envelope, size_t length,
							 uint8 type, int32 typmod);
/* FID of a value in the column's batch; 0 if there is no such value. */
extern CfdFid cfd_of_batch(FmgrInfo *flinfo, uint32 number, uint8 type);
/* Slots from this FID on may belong to rows that have not been read yet. */
extern CfdFid cfd_unread(void);

#endif
