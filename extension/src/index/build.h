/*
 * build.h
 *	  Index builds: passes the rows on from the table scan to the index's
 *	  sort in key order, so that the sort receives sorted input.
 *
 * Does not scan the table and does not write the index.
 *
 * Invariant: every row is passed on exactly once, in whatever order.
 */
#ifndef CFD_INDEX_BUILD_H
#define CFD_INDEX_BUILD_H

#include "postgres.h"
#include "access/tableam.h"

typedef struct CfdBuild CfdBuild;

/*
 * Tells the keeper for which columns an index is being built by a session with
 * a client or a restore ticket.
 */
extern void cfd_build_tell(Relation table, Relation index);
/* Returns NULL if the rows should go directly to the callback. */
extern CfdBuild *cfd_build_begin(Relation index, IndexBuildCallback callback, void *state);
/* An IndexBuildCallback whose state is the CfdBuild. */
extern void cfd_build_row(Relation index, ItemPointer tid, Datum *values, bool *nulls, bool alive,
						  void *build);
extern void cfd_build_end(CfdBuild *build);

#endif
