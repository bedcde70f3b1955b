/*
 * build.h
 *	  Index builds: rows on their way from the table to the index's sort, handed on
 *	  in the order of their keys, so that the sort finds them sorted.
 *
 * Does not read the table, nor write the index.
 *
 * Invariant: every row is handed on exactly once, in whatever order.
 */
#ifndef CFD_INDEX_BUILD_H
#define CFD_INDEX_BUILD_H

#include "postgres.h"
#include "access/tableam.h"

typedef struct CfdBuild CfdBuild;

/* Tells the keeper of which columns a client, or who has a ticket, builds an index. */
extern void cfd_build_tell(Relation table, Relation index);
/* NULL if the index's rows are to be handed on as they come. */
extern CfdBuild *cfd_build_begin(Relation index, IndexBuildCallback callback, void *state);
/* An IndexBuildCallback; the state is the CfdBuild. */
extern void cfd_build_row(Relation index, ItemPointer tid, Datum *values, bool *nulls, bool alive,
						  void *build);
extern void cfd_build_end(CfdBuild *build);

#endif
