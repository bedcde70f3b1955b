/*
 * target.h
 *	  The tables that verification and garbage collection are asked for.
 *
 * Invariant: whoever names a table here owns it.
 */
#ifndef CFD_GC_TARGET_H
#define CFD_GC_TARGET_H

#include "postgres.h"
#include "nodes/pg_list.h"
#include "storage/lockdefs.h"
#include "utils/relcache.h"

/* The table itself, or the tables below a partitioned one. */
extern List *cfd_target_tables(Oid oid);
/* Opens a table of access method confide; an error for any other. */
extern Relation cfd_target_open(Oid oid, LOCKMODE mode);

#endif
