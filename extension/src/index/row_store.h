/*
 * row_store.h
 *	  Rows of an index build that do not fit into memory. They are written
 *	  to disk as they arrive, and then sorted by ranks that are supplied
 *	  row by row.
 *
 * Does not compute ranks.
 *
 * Invariant: rows of equal rank are returned in the order of their TIDs.
 */
#ifndef CFD_INDEX_ROW_STORE_H
#define CFD_INDEX_ROW_STORE_H

#include "postgres.h"
#include "executor/tuptable.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"

typedef struct CfdRowStore CfdRowStore;

/* A row as returned by the store; valid until the next one. */
typedef struct CfdStoredRow
{
	ItemPointer tid;
	bool		alive;
	Datum	   *values;
	bool	   *nulls;
} CfdStoredRow;

/* Allocated in the current memory context. Uses maintenance_work_mem. */
extern CfdRowStore *cfd_row_store_create(Relation index);
extern void cfd_row_store_put(CfdRowStore *store, ItemPointer tid, bool alive, const Datum *values,
							  const bool *nulls);
/* Repositions to the first row. */
extern void cfd_row_store_rewind(CfdRowStore *store);
/* Returns the next row in order of arrival, false after the last one. */
extern bool cfd_row_store_next(CfdRowStore *store, CfdStoredRow *row);
/*
 * Sets the rank of the row just returned. Once all rows have one, they can be
 * sorted.
 */
extern void cfd_row_store_rank(CfdRowStore *store, uint32 rank);
extern void cfd_row_store_sort(CfdRowStore *store);
extern bool cfd_row_store_next_sorted(CfdRowStore *store, CfdStoredRow *row);
extern void cfd_row_store_end(CfdRowStore *store);

#endif
