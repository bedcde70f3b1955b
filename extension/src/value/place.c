/*
 * place.c
 *	  Where a new temporary value goes: see place.h.
 *
 * A literal is read, and a constant expression is folded, by a call through a
 * fresh FmgrInfo; whatever reads or computes rows calls again and again through
 * the same one. So the first call through an FmgrInfo may be for something that
 * is kept, and later calls are not. At worst a first call for a row leaves
 * one value in the plan arena (or an orphan constant) per plan node.
 *
 * Invariant: as in place.h.
 */
#include "postgres.h"

#include "nodes/primnodes.h"
#include "value/place.h"

CfdMode		cfd_mode = CFD_MODE_QUERY;
int			cfd_statement_depth = 0;

static char called;

bool
cfd_is_mark(const void *extra)
{
	return extra == &called;
}

void
cfd_mark_called(FmgrInfo *flinfo)
{
	if (flinfo != NULL)
		flinfo->fn_extra = &called;
}

CfdPlace
cfd_place_input(FmgrInfo *flinfo, uint8 origin, uint8 flags)
{
	bool		first = cfd_first_call(flinfo);

	if (cfd_mode == CFD_MODE_CATALOG && first)
		return CFD_PLACE_PERMANENT;
	if ((flags & CFD_ENVELOPE_FLAG_HANDLE) != 0 || cfd_mode == CFD_MODE_PREPARE)
		return CFD_PLACE_PLAN;
	if (first && (cfd_mode == CFD_MODE_COPY || origin == CFD_ORIGIN_EXPORT))
		return CFD_PLACE_PLAN;
	return CFD_PLACE_STATEMENT;
}

/* Whether the call folds a constant expression, or could. */
static bool
arguments_constant(const FmgrInfo *flinfo)
{
	List	   *args;
	ListCell   *cell;

	if (flinfo == NULL || flinfo->fn_expr == NULL)
		return false;
	if (IsA(flinfo->fn_expr, FuncExpr))
		args = ((FuncExpr *) flinfo->fn_expr)->args;
	else if (IsA(flinfo->fn_expr, OpExpr))
		args = ((OpExpr *) flinfo->fn_expr)->args;
	else
		return false;
	foreach(cell, args)
	{
		if (!IsA(lfirst(cell), Const))
			return false;
	}
	return true;
}

CfdPlace
cfd_place_result(FmgrInfo *flinfo, const CfdFid *operands, int count)
{
	if (flinfo == NULL)
		return CFD_PLACE_STATEMENT;
	/* What a definition makes of rows is no constant: the keeper would refuse to keep it. */
	if (!arguments_constant(flinfo))
		return CFD_PLACE_STATEMENT;
	if (cfd_mode == CFD_MODE_CATALOG)
		return CFD_PLACE_PERMANENT;
	for (int i = 0; i < count; i++)
	{
		if (cfd_fid_is_temporary(operands[i]) &&
			cfd_fid_partition(operands[i]) == cfd_fid_partition(cfd_channel.next[CFD_STATEMENT]))
			return CFD_PLACE_STATEMENT;
	}
	return CFD_PLACE_PLAN;
}
