/*
 * results.h
 *	  Rows on their way to the client, a batch at a time: the envelopes of all
 *	  their protected values are asked for at once.
 *
 * Does not change which rows come, nor their order.
 *
 * Invariants: when a run of the executor ends without error, every row has been
 * handed on; a value whose envelope did not come with the others is asked for
 * alone, so that its error is raised where its row is written.
 */
#ifndef CFD_RESULT_RESULTS_H
#define CFD_RESULT_RESULTS_H

#include "postgres.h"
#include "wire/wire.h"
#include "executor/execdesc.h"
#include "tcop/dest.h"

/* Rows of a batch; 0: values are asked for one by one. */
extern int	cfd_result_batch;

/* The receiver for a run; the query's own one if there is nothing to gain. */
extern DestReceiver *cfd_results_receiver(QueryDesc *query);
/* The run is over, or failed. */
extern void cfd_results_end(void);
/* Where envelopes are known (known/known.h). */
extern void cfd_results_init(void);

#endif
