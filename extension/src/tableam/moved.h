/*
 * moved.h
 *	  Identifiers that a session without a client would put into another row than theirs.
 *
 * An identifier of the column's own partition needs no promotion, so the keeper would never
 * hear of it: without a client it is asked here, and refuses. In a client's session to move
 * values is the client's statement.
 *
 * Does not see what is written below the access method (CLUSTER, VACUUM FULL, edited pages),
 * and passes the rewriting of a table, where every row keeps what it has (hooks/ddl.c refuses
 * expressions there).
 */
#ifndef CFD_MOVED_H
#define CFD_MOVED_H

#include "postgres.h"
#include "executor/tuptable.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"

/* Before rows are promoted and written; `old` is the version that the only one replaces. */
extern void cfd_check_moved(Relation relation, ItemPointer old, TupleTableSlot **slots, int count);

#endif
