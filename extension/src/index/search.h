/*
 * search.h
 *	  B-tree searches with one round trip per page instead of one per
 *	  comparison.
 *
 * Before PostgreSQL descends an index or steps to the next leaf page, the keys
 * of that page are sent to the keeper together with the value searched for.
 * The resulting orders are stored as known facts, which PostgreSQL's own
 * comparisons then find.
 *
 * Invariants: only orders that the keeper returned, of values that this scan
 * compares, are stored; a concurrent change of the page costs round trips but
 * never yields a wrong order; nothing is stored beyond the statement.
 */
#ifndef CFD_INDEX_SEARCH_H
#define CFD_INDEX_SEARCH_H

#include "postgres.h"
#include "wire/wire.h"
#include "fmgr.h"
#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"

/* Setting confide.enable_index_search. */
extern bool cfd_enable_index_search;

/*
 * routines.c: enables batched searches for the index scans of an initialised
 * plan, and for the indexes of a table.
 */
extern void cfd_search_plan(PlanState *plan);
extern void cfd_search_indexes(Relation table);
/* routines.c: the scan's condition on a column: equality, or a bound below or above. */
extern const ScanKeyData *cfd_scan_condition(IndexScanDesc scan, AttrNumber column, bool equal, bool below);

/*
 * search.c: called before PostgreSQL descends for a scan's first row, before
 * it steps to the next leaf page, and before it descends to insert a row. If
 * the index is `unique`, the insertion first searches for an existing equal
 * row.
 */
extern void cfd_search_before_first(IndexScanDesc scan, bool forward);
extern void cfd_search_before_next(IndexScanDesc scan, bool forward);
extern void cfd_search_before_insert(Relation index, const Datum *values, const bool *nulls, ItemPointer row,
									 bool unique);

#endif
