/*
 * whole.c
 *	  Scans that return whole rows; see whole.h.
 *
 * Invariant: as in whole.h.
 */
#include "postgres.h"

#include "plan/whole.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "optimizer/tlist.h"

/*
 * Whether there is anything but user columns: a physical target list has no
 * system columns or whole-row references.
 */
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

	/* There is no physical target list for a table with dropped columns. */
	scan->targetlist = targets != NIL ? targets : add_to_flat_tlist(NIL, needed);
}
