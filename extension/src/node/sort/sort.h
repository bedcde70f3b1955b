/*
 * sort.h
 *	  How a plan describes a sort in bulk to the node that executes it.
 *
 * Invariant: what is in a plan can be copied, written out and read back (parallel
 * workers get it so).
 */
#ifndef CFD_NODE_SORT_SORT_H
#define CFD_NODE_SORT_SORT_H

#include "postgres.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"

/* Members of custom_private, lists of integers: one entry for each sort column. */
typedef enum CfdSortPart
{
	CFD_SORT_COLUMN = 0,		/* number in the rows, from 1 */
	CFD_SORT_TYPE,				/* code of the protected type, or 0 */
	CFD_SORT_PLAIN,				/* OID of a plain type, or 0 */
	CFD_SORT_NUMBER,			/* whether its values can be told as numbers */
	CFD_SORT_OPERATOR,			/* its OID */
	CFD_SORT_COLLATION,			/* its OID */
	CFD_SORT_DESCENDING,
	CFD_SORT_NULLS_FIRST,
	CFD_SORT_PARTS
} CfdSortPart;

extern void cfd_sort_init(void);
/* Whether a query is to be looked through, once it is planned; then does so. */
extern bool cfd_sort_wanted(Query *query);
extern void cfd_sort_pass(PlannedStmt *statement, int options);
/* node.c */
extern const CustomScanMethods cfd_sort_methods;

#endif
