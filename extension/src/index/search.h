/*
 * search.h
 *	  Where a value belongs in a B-tree, asked once a page, not once a comparison.
 *
 * Before PostgreSQL descends an index or steps to its next leaf page, the keys of
 * the page are sent to the keeper together with the value that is looked for. The
 * orders that follow are remembered, and PostgreSQL's own comparisons find them.
 *
 * Invariants: what is remembered are orders that the keeper gave, of values that
 * this very scan compares; a page that changes meanwhile costs round trips, never
 * a wrong order; nothing is remembered beyond the statement.
 */
#ifndef CFD_INDEX_SEARCH_H
#define CFD_INDEX_SEARCH_H

#include "postgres.h"
#include "wire/wire.h"
#include "fmgr.h"
#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"

/* confide.enable_index_search */
extern bool cfd_enable_index_search;

/* routines.c: the scans of a plan that has been started, and the table's indexes, search. */
extern void cfd_search_plan(PlanState *plan);
extern void cfd_search_indexes(Relation table);

/*
 * search.c: before PostgreSQL descends for a scan's first row, or goes to its next leaf page; and before
 * it descends to insert a row that is there already, which is looked for first if the index is `unique`.
 */
extern void cfd_search_before_first(IndexScanDesc scan, bool forward);
extern void cfd_search_before_next(IndexScanDesc scan, bool forward);
extern void cfd_search_before_insert(Relation index, const Datum *values, const bool *nulls, ItemPointer row,
									 bool unique);

#endif
