/*
 * pairs.h
 *	  The pairs of a semi or anti join, by the batch: each outer row of a nested loop, with
 *	  the inner rows that it finds.
 *
 * Reads pairs into a buffer; which rows have a match is node.c's business. The loop's plan
 * and state are PostgreSQL's, but it does not run: it would ask about each pair.
 *
 * Invariant: rows are read in the loop's order. All pairs of an outer row are in one batch,
 * unless they are too many: then the batch is cut, the row is its last, and comes
 * again as the first of the next one.
 */
#ifndef CFD_NODE_SCAN_PAIRS_H
#define CFD_NODE_SCAN_PAIRS_H

#include "postgres.h"
#include "nodes/execnodes.h"
#include "batch/driver.h"

/* The nested loop, if its pairs are to be read here; NULL for any other node. */
extern NestLoopState *cfd_pairs_begin(PlanState *child);
/* Fills the buffer with so many rows or pairs at most. False: there are no more rows. */
extern bool cfd_pairs_read(NestLoopState *loop, CfdBuffer *buffer, ExprContext *context, int most);
/* The outer row with which a batch was cut needs no more pairs. */
extern void cfd_pairs_leave_row(NestLoopState *loop);

#endif
