/*
 * passing.h
 *	  Rows on their way to the client: while one is written, texts of protected values may be made
 *	  (value/shown.h); and rows within rows are looked at before.
 *
 * Does not hold rows back (results.h).
 *
 * Invariant: a protected value within a record, a composite value or an array of these does not go
 * to a client: its proxy could not open it, and the application would be shown an envelope.
 */
#ifndef CFD_RESULT_PASSING_H
#define CFD_RESULT_PASSING_H

#include "postgres.h"
#include "tcop/dest.h"

/* Lives as long as what runs. */
typedef struct CfdPassing
{
	DestReceiver pub;
	DestReceiver *to;
} CfdPassing;

/*
 * The receiver to be given the rows of a statement; "to" itself if they are not for a client, or
 * plain. Without a description they may be anything.
 */
extern DestReceiver *cfd_passing_receiver(CfdPassing *passing, DestReceiver *to, TupleDesc desc, bool outermost);

#endif
