/*
 * unready.h
 *	  Partial indexes whose predicate compares protected values, where there is no client session (a
 *	  superuser restores a dump): nobody can say which rows they hold.
 *
 * Does not build them later: their owner has REINDEX do it, through the proxy.
 *
 * Invariant: an index that lacks a row is neither valid nor ready in the catalog, in the same
 * transaction: no plan uses it, no row is put into it.
 */
#ifndef CFD_TABLEAM_UNREADY_H
#define CFD_TABLEAM_UNREADY_H

#include "postgres.h"
#include "nodes/execnodes.h"
#include "nodes/nodes.h"
#include "utils/relcache.h"

/* Whether an expression calls a function on protected values: without a client it cannot be evaluated. */
extern bool cfd_asks_keeper(Node *node, void *context);
/* Whether an index that is to be built stays empty. */
extern bool cfd_unready_build(Relation index, const struct IndexInfo *info);
/* Says so in the catalog. */
extern void cfd_unready_mark(Relation table, Oid index);
/* Those of a table that gets rows; whether there are any. */
extern bool cfd_unready_insert(Relation table);

#endif
