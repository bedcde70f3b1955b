/*
 * lookup.h
 *	  Plan node ConfideLookup, placed on the outer side of a nested loop
 *	  whose inner side searches an index by protected keys. It reads rows
 *	  ahead and searches for all their keys in one round trip per level of
 *	  the tree.
 *
 * Does not change the rows or their order. The search itself remains with the
 * inner scan, which finds the answers to what it would have asked
 * (index/ahead.h).
 *
 * Invariant: the node does not read ahead where rows might be left unread or
 * where reading ahead could be noticed.
 */
#ifndef CFD_NODE_LOOKUP_LOOKUP_H
#define CFD_NODE_LOOKUP_LOOKUP_H

#include "postgres.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"

/* Members of custom_private. */
typedef enum CfdLookupPart
{
	CFD_LOOKUP_INNER = 0,		/* plan_node_id of the inner scan */
	CFD_LOOKUP_INDEX			/* OID of the index */
} CfdLookupPart;

/* plan.c */
extern void cfd_lookup_init(void);
/* Whether a query needs this pass after planning, and the pass itself. */
extern bool cfd_lookup_wanted(Query *query);
extern void cfd_lookup_pass(PlannedStmt *statement, int options);
/* node.c */
extern const CustomScanMethods cfd_lookup_methods;

#endif
