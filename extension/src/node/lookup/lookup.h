/*
 * lookup.h
 *	  Plan node ConfideLookup: the outer side of a nested loop whose inner side looks protected keys up
 *	  in an index. It reads rows ahead, and has the keeper told of all their keys together.
 *
 * Does not change which rows there are, nor their order, nor who searches: the inner scan does, row by
 * row, and finds what it would have asked (index/ahead.h).
 *
 * Invariant: nothing is read ahead that would be left unread, or could be noticed.
 */
#ifndef CFD_NODE_LOOKUP_LOOKUP_H
#define CFD_NODE_LOOKUP_LOOKUP_H

#include "postgres.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"

/* Members of custom_private. */
typedef enum CfdLookupPart
{
	CFD_LOOKUP_INNER = 0,		/* number of the node that searches */
	CFD_LOOKUP_INDEX			/* what it searches */
} CfdLookupPart;

/* plan.c */
extern void cfd_lookup_init(void);
/* Whether a query is to be looked through, once it is planned; then does so. */
extern bool cfd_lookup_wanted(Query *query);
extern void cfd_lookup_pass(PlannedStmt *statement, int options);
/* node.c */
extern const CustomScanMethods cfd_lookup_methods;

#endif
