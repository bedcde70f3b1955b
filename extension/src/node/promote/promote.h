/*
 * promote.h
 *	  Plan node ConfidePromote, placed below an UPDATE or INSERT of several
 *	  rows. It promotes the values of the protected columns of a whole
 *	  batch of rows in one round trip.
 *
 * Writes no rows, and does not change them or their order. The table access
 * method (tableam/am.h) finds the promoted values in the row. It promotes
 * other values itself, for example where a trigger or a concurrent transaction
 * has changed the row.
 *
 * Invariants: garbage collection waits from the promotion until the batch's
 * rows have been written (session/pins.h); nothing that could see rows written
 * by its own statement is evaluated early.
 */
#ifndef CFD_NODE_PROMOTE_PROMOTE_H
#define CFD_NODE_PROMOTE_PROMOTE_H

#include "postgres.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"

/* Members of custom_private. */
typedef enum CfdPromotePart
{
	CFD_PROMOTE_RELATION = 0,	/* range table index of the target */
	CFD_PROMOTE_NUMBERS			/* attribute numbers, by column of the rows */
} CfdPromotePart;

extern bool cfd_enable_batch_promote;

/* plan.c */
extern void cfd_promote_init(void);
/* Whether a query needs this pass after planning, and the pass itself. */
extern bool cfd_promote_wanted(Query *query);
extern void cfd_promote_pass(PlannedStmt *statement, int options);
/* node.c */
extern const CustomScanMethods cfd_promote_methods;

#endif
