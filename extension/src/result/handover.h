/*
 * handover.h
 *	  Rows that a parallel worker hands over to its leader.
 *
 * A value that a worker has computed is known to the keeper by messages that nobody waits for. The
 * leader, which has a channel of its own, may name it as soon as it has the row. So a worker's rows
 * are held back until the keeper has done what was sent before them, many at a time.
 *
 * Invariant: no row leaves a worker before the keeper has done what made its values; rows leave in
 * their order.
 */
#ifndef CFD_RESULT_HANDOVER_H
#define CFD_RESULT_HANDOVER_H

#include "postgres.h"
#include "executor/execdesc.h"

/* A receiver that takes the place of a worker's; any other one as it is. */
extern DestReceiver *cfd_handover_receiver(QueryDesc *query);
/* Does away with it, after a run. */
extern void cfd_handover_end(void);

#endif
