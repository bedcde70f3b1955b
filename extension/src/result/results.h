/*
 * results.h
 *	  Batches of rows on their way to the client. The envelopes of all
 *	  protected values in a batch are fetched in one round trip.
 *
 * Does not change the set of rows or their order.
 *
 * Invariants: when a run of the executor ends without an error, every row has
 * been passed on; a value without an envelope in the batch is requested alone,
 * so that its error is raised at its own row.
 */
#ifndef CFD_RESULT_RESULTS_H
#define CFD_RESULT_RESULTS_H

#include "postgres.h"
#include "wire/wire.h"
#include "executor/execdesc.h"
#include "tcop/dest.h"

/* Rows per batch; 0: values are requested one by one (GUC). */
extern int	cfd_result_batch;

/* Returns the receiver for a run, or query->dest if batches gain nothing. */
extern DestReceiver *cfd_results_receiver(QueryDesc *query);
/* To be called when the run has ended or failed. */
extern void cfd_results_end(void);
/* Registers this module as a source of envelopes (known/known.h). */
extern void cfd_results_init(void);

#endif
