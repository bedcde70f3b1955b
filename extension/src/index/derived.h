/*
 * derived.h
 *	  Values of expressions in B-trees.
 *
 * An index stores what its expression makes of a row's columns. Such a value
 * is promoted into a partition of the table. There is one for each set of
 * columns that expressions use, and each kind of result, so indexes may share
 * one. What was made of one column has that column's name in the keeper; what
 * was made of several has a name that consists of theirs.
 *
 * Hash indexes store hashes only, and need none of this.
 *
 * Invariants: no temporary FID gets into an index; the redo record of a value
 * precedes the index entry that names it.
 */
#ifndef CFD_INDEX_DERIVED_H
#define CFD_INDEX_DERIVED_H

#include "postgres.h"
#include "access/tableam.h"
#include "nodes/pg_list.h"
#include "utils/relcache.h"
#include "wire/wire.h"

/*
 * Numbers of the columns of a table that an index's expression takes values
 * from. Returns NULL, and sets *number to the offending column if there is one
 * (0: the whole row), if they are none of the type enc_...
 */
extern Bitmapset *cfd_derived_sources(Oid table, Node *expression, int *number);
/* Whether an index stores values of expressions. */
extern bool cfd_index_derives(Relation index);
/*
 * Gives the values of expressions in `rows` rows of an index permanent FIDs.
 * The caller keeps collections away: by a pin, or by the lock of a build.
 */
extern void cfd_derived_promote(Relation table, Relation index, Datum *values, const bool *nulls, int rows);
/* Tells the keeper that such an index is being built, as cfd_build_tell. */
extern void cfd_derived_tell(Relation table, Relation index);
/*
 * What values there are of a table: a list of CfdWireLiveColumn, one for each
 * such column of its indexes.
 */
extern List *cfd_derived_kinds(Relation table);

/*
 * An index build: promotes the rows in batches and passes them on to the
 * callback.
 */
typedef struct CfdDeriving CfdDeriving;
extern CfdDeriving *cfd_deriving_begin(Relation table, Relation index, IndexBuildCallback callback, void *state);
/* An IndexBuildCallback whose state is the CfdDeriving. */
extern void cfd_deriving_row(Relation index, ItemPointer tid, Datum *values, bool *nulls, bool alive,
							 void *deriving);
extern void cfd_deriving_end(CfdDeriving *deriving);

#endif
