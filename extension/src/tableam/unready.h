/*
 * unready.h
 *	  Partial indexes whose predicate compares protected values, and indexes
 *	  on expressions that compute with them, in a session without a client.
 *
 * Such a session, for example a superuser who restores a dump, cannot find out
 * which rows belong in the index, or where. This module does not build the indexes
 * later; their owner runs REINDEX through the proxy.
 *
 * Invariant: an index that lacks a row is marked neither valid nor ready in
 * the catalog by the same transaction, so that no plan uses it and no row is
 * inserted into it.
 */
#ifndef CFD_TABLEAM_UNREADY_H
#define CFD_TABLEAM_UNREADY_H

#include "postgres.h"
#include "nodes/execnodes.h"
#include "nodes/nodes.h"
#include "utils/relcache.h"

/*
 * Whether an expression calls a function on protected values and therefore
 * cannot be evaluated without a client.
 */
extern bool cfd_asks_keeper(Node *node, void *context);
/* Whether an index that is to be built remains empty. */
extern bool cfd_unready_build(Relation index, const struct IndexInfo *info);
/* Marks an index as not valid and not ready. */
extern void cfd_unready_mark(Relation table, Oid index);
/*
 * Marks the indexes concerned of a table that is about to get rows. Returns
 * whether there were any.
 */
extern bool cfd_unready_insert(Relation table);

#endif
