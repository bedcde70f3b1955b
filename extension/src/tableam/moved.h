/*
 * moved.h
 *	  Check against moving permanent FIDs to other rows in a session
 *	  without a client.
 *
 * A FID of the column's own partition needs no promotion, so the keeper would
 * not learn that it is written again. In a session without a client the keeper
 * is asked here, and refuses. A client may move its values by its own
 * statements.
 *
 * Does not see writes below the access method (CLUSTER, VACUUM FULL,
 * manipulated pages). Does not check table rewrites, where every row keeps its
 * FIDs (hooks/ddl.c refuses expressions there).
 */
#ifndef CFD_MOVED_H
#define CFD_MOVED_H

#include "postgres.h"
#include "executor/tuptable.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"

/*
 * To be called before rows are promoted and written. `old` is the TID of the
 * version that a single row replaces, or NULL.
 */
extern void cfd_check_moved(Relation relation, ItemPointer old, TupleTableSlot **slots, int count);

#endif
