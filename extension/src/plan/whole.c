/*
 * whole.c
 *	  Scans that give whole rows: see whole.h.
 *
 * Invariant: as in whole.h.
 */
#include "postgres.h"

#include "plan/whole.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "optimizer/tlist.h"

/* System columns and whole-row references are not among the columns of a table. */
static bool
has_other_columns(List *exprs)
{
	ListCell   *cell;

	foreach(cell, exprs)
	{
		if (!IsA(lfirst(cell), Var) || ((Var *) lfirst(cell))->varattno <= 0)
			return true;
	}
	return false;
}

void
cfd_whole_rows(PlannerInfo *root, Plan *scan, List *needed)
{
	RelOptInfo *rel = find_base_rel(root, ((Scan *) scan)->scanrelid);
	List	   *targets = has_other_columns(needed) ? NIL : build_physical_tlist(root, rel);

	/* None where columns were dropped. */
	scan->targetlist = targets != NIL ? targets : add_to_flat_tlist(NIL, needed);
}
