/*
 * sort.h
 *	  How the plan describes a sort to the executor node ConfideSort.
 *
 * Invariant: everything in the plan can be copied, serialised and read back,
 * as parallel workers require.
 */
#ifndef CFD_NODE_SORT_SORT_H
#define CFD_NODE_SORT_SORT_H

#include "postgres.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"

/* Members of custom_private: lists of integers with one entry per sort column. */
typedef enum CfdSortPart
{
	CFD_SORT_COLUMN = 0,		/* column number in the rows, from 1 */
	CFD_SORT_TYPE,				/* code of a protected type, or 0 */
	CFD_SORT_PLAIN,				/* OID of a plain type, or 0 */
	CFD_SORT_NUMBER,			/* whether values can be sent as numbers */
	CFD_SORT_OPERATOR,			/* OID of the sort operator */
	CFD_SORT_COLLATION,			/* OID of the collation */
	CFD_SORT_DESCENDING,
	CFD_SORT_NULLS_FIRST,
	CFD_SORT_PARTS
} CfdSortPart;

extern void cfd_sort_init(void);
/* Whether a query needs this pass after planning, and the pass itself. */
extern bool cfd_sort_wanted(Query *query);
extern void cfd_sort_pass(PlannedStmt *statement, int options);
/* node.c */
extern const CustomScanMethods cfd_sort_methods;

#endif
