/*
 * target.h
 *	  Tables to be verified or collected.
 *
 * Invariant: the caller owns every table that is named here.
 */
#ifndef CFD_GC_TARGET_H
#define CFD_GC_TARGET_H

#include "postgres.h"
#include "nodes/pg_list.h"
#include "storage/lockdefs.h"
#include "utils/relcache.h"

/* The table itself, or the leaf partitions of a partitioned table. */
extern List *cfd_target_tables(Oid oid);
/* Opens a table of access method "confide". Raises an error for any other. */
extern Relation cfd_target_open(Oid oid, LOCKMODE mode);

#endif
