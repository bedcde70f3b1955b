/*
 * handover.h
 *	  Rows that a parallel worker passes to its leader.
 *
 * A worker computes values with one-way messages. The leader has a channel of
 * its own and may name such a value as soon as it has the row. A worker's rows
 * are therefore held back, many at a time, until the keeper has processed
 * everything sent before them.
 *
 * Invariant: no row leaves a worker before the keeper has processed the
 * messages that created its values; rows keep their order.
 */
#ifndef CFD_RESULT_HANDOVER_H
#define CFD_RESULT_HANDOVER_H

#include "postgres.h"
#include "executor/execdesc.h"

/*
 * Returns a receiver that wraps a parallel worker's. Any other receiver is
 * returned unchanged.
 */
extern DestReceiver *cfd_handover_receiver(QueryDesc *query);
/* Releases the receiver after a run. */
extern void cfd_handover_end(void);

#endif
