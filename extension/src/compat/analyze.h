/*
 * analyze.h
 *	  Whether ANALYZE looks at the expression of an index or at a column of a table.
 *
 * Up to PostgreSQL 16 the column says so. Later versions do not tell functions of types what the
 * values are of: there it is an expression if an index of the table that is analyzed is open and
 * has such an expression. ANALYZE opens indexes after it has looked at the table's columns.
 *
 * Invariant: as in compat.h.
 */
#ifndef CFD_COMPAT_ANALYZE_H
#define CFD_COMPAT_ANALYZE_H

#include "postgres.h"
#include "catalog/pg_class.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "utils/backend_status.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#if PG_VERSION_NUM >= 170000
static inline bool
cfd_index_is_analyzed(Oid oid, const VacAttrStats *stats)
{
	Relation	index = RelationIdGetRelation(oid);
	int			at = stats->tupattnum - 1;
	bool		found;

	if (!RelationIsValid(index))
		return false;
	found = index->rd_refcnt > 1 && at < index->rd_index->indnatts && index->rd_index->indkey.values[at] == 0;
	RelationClose(index);
	return found;
}

/* With track_activities off it is not known which table is analyzed: false. */
static inline bool
cfd_expression_is_analyzed(const VacAttrStats *stats)
{
	Relation	table;
	ListCell   *cell;
	bool		found = false;

	if (MyBEEntry == NULL || MyBEEntry->st_progress_command != PROGRESS_COMMAND_ANALYZE)
		return false;
	table = RelationIdGetRelation(MyBEEntry->st_progress_command_target);
	if (!RelationIsValid(table))
		return false;
	foreach(cell, RelationGetIndexList(table))
		found = found || cfd_index_is_analyzed(lfirst_oid(cell), stats);
	RelationClose(table);
	return found;
}
#else
static inline bool
cfd_expression_is_analyzed(const VacAttrStats *stats)
{
	return get_rel_relkind(stats->attr->attrelid) == RELKIND_INDEX;
}
#endif

#endif
