/*
 * row_store.h
 *	  Rows of an index build that do not fit into memory: kept on disk as they come, then sorted
 *	  by ranks that are told row by row.
 *
 * Does not know where ranks come from.
 *
 * Invariant: rows of equal rank come in the order of their places in the table.
 */
#ifndef CFD_INDEX_ROW_STORE_H
#define CFD_INDEX_ROW_STORE_H

#include "postgres.h"
#include "executor/tuptable.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"

typedef struct CfdRowStore CfdRowStore;

/* A row as the store gives it; valid until the next one. */
typedef struct CfdStoredRow
{
	ItemPointer tid;
	bool		alive;
	Datum	   *values;
	bool	   *nulls;
} CfdStoredRow;

/* In the current memory context; takes maintenance_work_mem. */
extern CfdRowStore *cfd_row_store_create(Relation index);
extern void cfd_row_store_put(CfdRowStore *store, ItemPointer tid, bool alive, const Datum *values,
							  const bool *nulls);
/* Back to the first row. */
extern void cfd_row_store_rewind(CfdRowStore *store);
/* The next row as they came; false after the last one. */
extern bool cfd_row_store_next(CfdRowStore *store, CfdStoredRow *row);
/* Tells the rank of the row just given. When all have one, they are sorted. */
extern void cfd_row_store_rank(CfdRowStore *store, uint32 rank);
extern void cfd_row_store_sort(CfdRowStore *store);
extern bool cfd_row_store_next_sorted(CfdRowStore *store, CfdStoredRow *row);
extern void cfd_row_store_end(CfdRowStore *store);

#endif
