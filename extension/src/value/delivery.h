/*
 * delivery.h
 *	  Cache of delivery envelopes: which are kept, and given out.
 *
 * A delivery envelope is a column value that the keeper has sealed for every
 * client that has the column's key. Such envelopes are returned without a
 * round trip. They are in shared memory (kept.h), which holds ciphertext only;
 * the keeper decides which client gets a column's key. This module does not
 * decide which values are requested (result/envelopes.h, promote.c).
 *
 * Invariants: an envelope is returned only in the period in which it was
 * requested, where the current period is the one the keeper publishes in the
 * channel's memory (crates/keeper/src/delivery.rs); and only after the
 * envelope that brought the column's key to this session's client was sent in
 * this period, by an earlier statement, with no error since.
 */
#ifndef CFD_VALUE_DELIVERY_H
#define CFD_VALUE_DELIVERY_H

#include "postgres.h"
#include "wire/wire.h"

/*
 * Larger results bypass the cache: a round trip is a small part of their cost,
 * and they would evict frequently used values.
 */
#define CFD_DELIVERY_VALUES_MAX 256

extern void cfd_delivery_init(void);

/* The current period; 0: do not use the cache. */
extern uint64 cfd_delivery_period(void);
/*
 * Form in which to request a value's envelope. CFD_DELIVERY_DELIVERY means
 * that it may be in the cache.
 */
extern uint8 cfd_delivery_form(CfdFid fid);
/*
 * Whether this session reads the column, so that it pays to cache values it
 * writes. Must be called within a period.
 */
extern bool cfd_delivery_expected(uint32 partition);
/*
 * Copies a cached envelope into the current memory context. Returns false if
 * there is none.
 */
extern bool cfd_delivery_find(uint64 period, CfdFid fid, uint8 type, const char **envelope, uint32 *length);
/*
 * Processes an envelope that was requested in a period and form. Returns
 * whether it brings the column's key.
 */
extern bool cfd_delivery_came(uint64 period, CfdFid fid, uint8 type, uint8 form, const char *envelope, uint32 length);
/*
 * An envelope that brings a column's key, requested in this period, is being
 * written.
 */
extern void cfd_delivery_written(uint64 period, CfdFid fid);
/* A new statement begins: what earlier ones wrote has been sent. */
extern void cfd_delivery_statement(void);
/*
 * A transaction or subtransaction was aborted: what was being written may not
 * have been sent.
 */
extern void cfd_delivery_failed(void);

#endif
