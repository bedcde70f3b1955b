/*
 * promote.h
 *	  Plan node ConfidePromote: below an UPDATE or INSERT of several rows it takes rows by
 *	  the batch, and has the values of the protected columns promoted together.
 *
 * Writes no rows, and does not change which there are, nor their order. What is promoted here
 * the access method (tableam/am.h) finds in place; what it finds elsewhere, because a
 * trigger has changed it or another transaction the row, it promotes itself.
 *
 * Invariants: garbage collection waits from the promotion on until the batch's rows are written
 * (session/pins.h); nothing that could see rows written by its own statement is evaluated early.
 */
#ifndef CFD_NODE_PROMOTE_PROMOTE_H
#define CFD_NODE_PROMOTE_PROMOTE_H

#include "postgres.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"

/* Members of custom_private. */
typedef enum CfdPromotePart
{
	CFD_PROMOTE_RELATION = 0,	/* its number in the range table */
	CFD_PROMOTE_NUMBERS			/* of attributes, in the order of the rows' columns */
} CfdPromotePart;

extern bool cfd_enable_batch_promote;

/* plan.c */
extern void cfd_promote_init(void);
/* Whether a query is to be looked through, once it is planned; then does so. */
extern bool cfd_promote_wanted(Query *query);
extern void cfd_promote_pass(PlannedStmt *statement, int options);
/* node.c */
extern const CustomScanMethods cfd_promote_methods;

#endif
