/*
 * passing.h
 *	  A DestReceiver that marks when a row is being written to the client,
 *	  which permits output functions to return envelopes (value/shown.h).
 *	  It also checks composite values.
 *
 * Does not hold rows back (results.h).
 *
 * Invariant: a protected value inside a record, a composite value or an array
 * of these is not sent to a client, because the proxy cannot open it and the
 * application would be shown an envelope.
 */
#ifndef CFD_RESULT_PASSING_H
#define CFD_RESULT_PASSING_H

#include "postgres.h"
#include "tcop/dest.h"

/* Must live as long as the running statement. */
typedef struct CfdPassing
{
	DestReceiver pub;
	DestReceiver *to;
} CfdPassing;

/*
 * Returns the receiver to use for a statement's rows. That is "to" itself if
 * the rows are not for a client or cannot contain protected values. A NULL
 * descriptor means that the rows may have any type.
 */
extern DestReceiver *cfd_passing_receiver(CfdPassing *passing, DestReceiver *to, TupleDesc desc, bool outermost);

#endif
