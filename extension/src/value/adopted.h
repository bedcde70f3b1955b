/*
 * adopted.h
 *	  What the transaction has adopted (adopt.h) in columns that the session
 *	  reads: the envelopes, as the client has sealed them.
 *
 * The client that has sealed them can open them, so within the transaction
 * they are returned as they are. At its end the keeper is asked for delivery
 * envelopes (delivery.h), for other sessions and later statements.
 *
 * Invariants: an envelope is returned only to the client that has sealed it, on
 * the channel on which its value was announced; only for a value that the keeper
 * would show to the client as it is: the client has the column's key in the
 * current period.
 */
#ifndef CFD_VALUE_ADOPTED_H
#define CFD_VALUE_ADOPTED_H

#include "postgres.h"
#include "value/sealed.h"

/* A FID has been given to a sealed value. The period is that of cfd_delivery_period(). */
extern void cfd_adopted_note(uint64 period, CfdFid fid, const CfdSealed *sealed);
/* Copies the client's own envelope into the current memory context. To be called if the column's key is known. */
extern bool cfd_adopted_find(CfdFid fid, uint8 type, const char **envelope, uint32 *length);
/*
 * Of what was noted delivery envelopes are wanted of a period: how many there are, at most
 * CFD_DELIVERY_VALUES_MAX. Sets the period and them.
 */
extern int	cfd_adopted_wanted(uint64 *period, CfdWireWanted *wanted);
/* They have arrived. */
extern void cfd_adopted_delivered(uint64 period, const CfdWireWanted *wanted, int many, CfdReader envelopes);
/* Waits for the keeper, as cfd_fence, and takes them. */
extern void cfd_adopted_confirm(void);
/* The transaction has ended. */
extern void cfd_adopted_forget(void);

#endif
