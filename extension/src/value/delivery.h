/*
 * delivery.h
 *	  Delivery envelopes: values of columns, sealed by the keeper for every client who has the
 *	  column's key, are kept in PostgreSQL's shared memory, and given out without asking.
 *
 * What is kept is ciphertext, and of no use without the key; whether a client gets it is the
 * keeper's decision. Which values are asked for is not decided here (result/envelopes.h, promote.c).
 *
 * Invariants: an envelope is given out only in the period in which it was asked for, as the keeper
 * tells it in the channel's memory (crates/keeper/src/delivery.rs); and only when the envelope that brought
 * the column's key to this session's client, in this period, has gone out in an earlier statement
 * without an error since.
 */
#ifndef CFD_VALUE_DELIVERY_H
#define CFD_VALUE_DELIVERY_H

#include "postgres.h"
#include "wire/wire.h"

/* Of larger results a round trip is a small part; they would drive out what is wanted often. */
#define CFD_DELIVERY_VALUES_MAX 256

extern void cfd_delivery_init(void);
extern void cfd_delivery_request_shmem(void);
extern void cfd_delivery_init_shmem(void);

/* The period; 0: everything is to be asked for, for this session alone. */
extern uint64 cfd_delivery_period(void);
/* In which form a value's envelope is asked for; CFD_DELIVERY_DELIVERY: or found here. */
extern uint8 cfd_delivery_form(CfdFid fid);
/* Whether this session reads the column: values that it writes are worth an envelope. In a period only. */
extern bool cfd_delivery_expected(uint32 partition);
/* Keeps the envelope of a value for all who may see it, if it is one that is kept; the period is the keeper's. */
extern void cfd_delivery_keep(uint64 period, CfdFid fid, uint8 type, const char *envelope, uint32 length);
/* A copy of the envelope in the current context, if it is kept. */
extern bool cfd_delivery_find(uint64 period, CfdFid fid, uint8 type, const char **envelope, uint32 *length);
/* What was asked for in a period, and in which form, has come. Gives whether it brings the column's key. */
extern bool cfd_delivery_came(uint64 period, CfdFid fid, uint8 type, uint8 form, const char *envelope, uint32 length);
/* An envelope with a column's key, asked for in this period, is written. */
extern void cfd_delivery_written(uint64 period, CfdFid fid);
/* A statement begins: what was written before has gone out. */
extern void cfd_delivery_statement(void);
/* A transaction, or a part of one, has failed: what was being written may not have gone out. */
extern void cfd_delivery_failed(void);

#endif
