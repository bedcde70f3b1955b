/*
 * outer.c
 *	  Batched index searches for the outer rows of a nested loop; see
 *	  ahead.h.
 *
 * The search is done before the loop reaches these rows, for as many as its
 * outer side has read ahead (node/lookup).
 *
 * Invariant: as in ahead.h.
 */
#include "postgres.h"

#include "index/ahead.h"
#include "index/arms.h"
#include "nodes/execnodes.h"
#include "utils/memutils.h"

CfdArms *
cfd_outer_begin(EState *state, int inner, int columns)
{
	CfdArms    *group = cfd_arms_make(state->es_query_cxt, CFD_OUTER_ROWS_MAX);

	group->state = state;
	group->inner = inner;
	group->columns = columns;
	cfd_arms_add(group);
	return group;
}

void
cfd_outer_clear(CfdArms *group)
{
	cfd_arms_clear(group);
}

void
cfd_outer_row(CfdArms *group, const Oid *types, const Datum *values, const bool *nulls)
{
	CfdArm	   *arm = &group->arms[group->count];
	CfdArmValue *lead;

	/* The inner scan has not started yet, so nobody could find the answers. */
	if (group->where == NULL || group->count == group->room)
		return;
	lead = MemoryContextAlloc(group->asking, sizeof(CfdArmValue) * group->columns);
	for (int i = 0; i < group->columns; i++)
	{
		if (nulls[i] || !cfd_arms_value(group->index, i + 1, types[i], values[i], &lead[i]))
			return;
	}
	arm->lead = lead;
	arm->values[0] = lead[group->columns - 1];
	arm->count = 1;
	group->count++;
}

void
cfd_outer_ask(CfdArms *group)
{
	/* A single row is searched for by the scan itself, which may guess its pages. */
	if (group->count > 1)
		cfd_arms_ask(group);
}

void
cfd_outer_link(PlanState *scan)
{
	if (IsA(scan, IndexScanState))
		cfd_arms_link(scan->state, scan->plan->plan_node_id, &((IndexScanState *) scan)->iss_ScanDesc,
					  ((IndexScanState *) scan)->iss_RelationDesc);
	else if (IsA(scan, IndexOnlyScanState))
		cfd_arms_link(scan->state, scan->plan->plan_node_id, &((IndexOnlyScanState *) scan)->ioss_ScanDesc,
					  ((IndexOnlyScanState *) scan)->ioss_RelationDesc);
}

uint64
cfd_outer_round_trips(const CfdArms *group)
{
	return group->round_trips;
}
