/*
 * unready.c
 *	  Partial indexes and indexes on expressions without a client; see
 *	  unready.h.
 *
 * REINDEX and CREATE INDEX CONCURRENTLY still fail without a client, because
 * both mark an index valid after building it.
 *
 * Invariant: as in unready.h.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/pg_index.h"
#include "cell/cell.h"
#include "nodes/nodeFuncs.h"
#include "session/channel.h"
#include "tableam/unready.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

static bool
takes_protected(Oid function, void *context)
{
	Oid		   *types;
	int			count;
	bool		found = false;

	(void) context;
	(void) get_func_signature(function, &types, &count);
	for (int i = 0; i < count && !found; i++)
		found = cfd_family_contains(types[i]);
	return found;
}

bool
cfd_asks_keeper(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return check_functions_in_node(node, takes_protected, context) ||
		expression_tree_walker(node, cfd_asks_keeper, context);
}

/* Whether an index's rows depend on what the keeper computes. */
static bool
index_asks_keeper(Relation index)
{
	return cfd_asks_keeper((Node *) RelationGetIndexPredicate(index), NULL) ||
		cfd_asks_keeper((Node *) RelationGetIndexExpressions(index), NULL);
}

bool
cfd_unready_build(Relation index, const struct IndexInfo *info)
{
	return !cfd_channel.had_client && !info->ii_Concurrent && info->ii_ExclusionOps == NULL &&
		!ReindexIsProcessingIndex(RelationGetRelid(index)) && index_asks_keeper(index);
}

void
cfd_unready_mark(Relation table, Oid index)
{
	Relation	catalog = table_open(IndexRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(INDEXRELID, ObjectIdGetDatum(index));
	Form_pg_index form;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u", index);
	form = (Form_pg_index) GETSTRUCT(tuple);
	if (form->indisready)
	{
		form->indisvalid = form->indisready = false;
		/* PostgreSQL requires this of indexes that are not valid. */
		form->indisclustered = form->indisreplident = false;
		CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
		CacheInvalidateRelcache(table);
		ereport(NOTICE,
				(errmsg("index \"%s\" of relation \"%s\" is not kept, and becomes invalid",
						get_rel_name(index), RelationGetRelationName(table)),
				 errdetail("Its predicate or an expression computes with protected values, and there is no client session."),
				 errhint("Have it built through the Confide proxy: REINDEX INDEX.")));
	}
	heap_freetuple(tuple);
	table_close(catalog, RowExclusiveLock);
}

bool
cfd_unready_insert(Relation table)
{
	List	   *indexes = RelationGetIndexList(table);
	ListCell   *cell;
	bool		any = false;

	foreach(cell, indexes)
	{
		/* The statement takes the same lock. */
		Relation	index = index_open(lfirst_oid(cell), RowExclusiveLock);

		if (index->rd_index->indisready && index_asks_keeper(index))
		{
			cfd_unready_mark(table, lfirst_oid(cell));
			any = true;
		}
		index_close(index, NoLock);
	}
	list_free(indexes);
	return any;
}
