/*
 * computed.c
 *	  The generated columns of ledger tables, while statements write to them; see ledger.h.
 *
 * What the expressions of sn, valid_from and by give is never seen: rows.c sets the values when a
 * row is written. To read, plan and compute the expressions is a large part of what a row costs. So
 * a relation that has no other generated columns is not said to have any while the executor starts
 * or runs such a statement.
 *
 * Invariant: as before once the statement has ended, even by an error. If the relation is loaded
 * anew meanwhile, the expressions are computed, which is as right.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_attribute.h"
#include "ledger/ledger.h"
#include "parser/parsetree.h"
#include "utils/rel.h"

/*
 * Whether its generated columns are only a ledger's own. Where something else may look at their values
 * before a row is written, they stay.
 */
static bool
computed_in_vain(Relation relation)
{
	TupleConstr *constr = RelationGetDescr(relation)->constr;
	const CfdLedgerPlaces *at;

	if (constr == NULL || !constr->has_generated_stored || relation->rd_rel->relrowsecurity)
		return false;
	at = &cfd_columns(relation)->ledger;
	return at->role == CFD_LEDGER_TABLE && at->alone && !OidIsValid(relation->rd_rel->relrewrite);
}

/* Opens a relation of the statement. Whoever planned it has the lock. */
static Relation
open_result(const QueryDesc *query, int index)
{
	Relation	relation = query->estate != NULL ? query->estate->es_relations[index - 1] : NULL;

	if (relation == NULL)
		return table_open(rt_fetch(index, query->plannedstmt->rtable)->relid, NoLock);
	RelationIncrementReferenceCount(relation);
	return relation;
}

void
cfd_ledger_uncompute(const QueryDesc *query, CfdUncomputed *of)
{
	ListCell   *cell;

	of->count = 0;
	foreach(cell, query->plannedstmt->resultRelations)
	{
		Relation	relation;

		if (of->count == CFD_UNCOMPUTED_MAX)
			return;
		relation = open_result(query, lfirst_int(cell));
		if (!computed_in_vain(relation))
		{
			table_close(relation, NoLock);
			continue;
		}
		RelationGetDescr(relation)->constr->has_generated_stored = false;
		of->relation[of->count++] = relation;
	}
}

void
cfd_ledger_recompute(const CfdUncomputed *of)
{
	for (int i = 0; i < of->count; i++)
		RelationGetDescr(of->relation[i])->constr->has_generated_stored = true;
}

void
cfd_ledger_uncompute_end(const CfdUncomputed *of)
{
	for (int i = 0; i < of->count; i++)
		table_close(of->relation[i], NoLock);
}
