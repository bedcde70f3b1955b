/*
 * scan.h
 *	  The batched scan: a plan node above a scan of a table that has the protected
 *	  quals evaluated, and protected expressions computed, by the batch.
 *
 * path.c makes the paths and the plan, node.c executes, buffer.c holds a batch of
 * rows. The child is PostgreSQL's own scan, with the plain quals; access methods
 * are not known here.
 *
 * Invariants: rows and errors are those of the child with all quals and
 * expressions evaluated row by row; what is declassified is whether a row
 * passes the quals, which is less.
 */
#ifndef CFD_NODES_SCAN_H
#define CFD_NODES_SCAN_H

#include "postgres.h"
#include "nodes/extensible.h"

/* Rows of a batch, at first and at most. */
#define CFD_SCAN_FIRST_ROWS 32
#define CFD_SCAN_MOST_ROWS 4096

extern bool cfd_enable_batch_scan;
extern double cfd_exchange_cost;
extern double cfd_batch_row_cost;

extern void cfd_scan_init(void);
extern Node *cfd_scan_create_state(CustomScan *scan);

#endif
