/*
 * target.c
 *	  Tables to be verified or collected; see target.h.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "compat/compat.h"
#include "gc/target.h"
#include "miscadmin.h"
#include "value/types.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

static bool
has_method(Oid oid)
{
	Relation	relation = table_open(oid, AccessShareLock);
	bool		result = relation->rd_rel->relam == cfd_access_method();

	table_close(relation, AccessShareLock);
	return result;
}

static void
must_own(Oid oid)
{
	if (!CFD_OWNS(oid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(oid)), get_rel_name(oid));
}

List *
cfd_target_tables(Oid oid)
{
	List	   *tables = NIL;
	ListCell   *cell;

	if (get_rel_relkind(oid) != RELKIND_PARTITIONED_TABLE)
		return list_make1_oid(oid);
	must_own(oid);
	foreach(cell, find_all_inheritors(oid, AccessShareLock, NULL))
	{
		Oid			child = lfirst_oid(cell);
		char		kind = get_rel_relkind(child);

		if (kind == RELKIND_RELATION && has_method(child))
			tables = lappend_oid(tables, child);
	}
	return tables;
}

Relation
cfd_target_open(Oid oid, LOCKMODE mode)
{
	Relation	relation = table_open(oid, mode);

	must_own(oid);
	if (relation->rd_rel->relam != cfd_access_method())
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table of access method confide", RelationGetRelationName(relation))));
	if (RELATION_IS_OTHER_TEMP(relation))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("\"%s\" is a temporary table of another session", RelationGetRelationName(relation))));
	return relation;
}
