/*
 * ahead.c
 *	  Chooses the scans of a plan that search together; see ahead.h. The
 *	  search itself is in arms.c.
 *
 * Arms of an OR are included if they have a lower bound on the index's first
 * column and all values are known when the plan starts. Arrays are included if
 * they are the scan's only condition.
 *
 * Invariants: as in ahead.h.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "index/ahead.h"
#include "index/arms.h"
#include "index/elements.h"
#include "compat/compat.h"
#include "value/types.h"
#include "utils/rel.h"

/* Maximum number of scans of an OR, and of array elements, in one search. */
#define SCANS_MAX 64
#define ELEMENTS_MAX 512

/* ---------- scans of a BitmapOr ---------- */

static bool
take_value(Relation index, const ScanKeyData *key, CfdArmValue *value)
{
	Oid			type = OidIsValid(key->sk_subtype) ? key->sk_subtype : index->rd_opcintype[0];

	return cfd_arms_value(index, 1, type, key->sk_argument, value);
}

/* Adds a scan with one equality, or with a lower bound and possibly an upper bound. */
static void
add_scan(CfdArms *to, const BitmapIndexScanState *node)
{
	IndexScanDesc desc = node->biss_ScanDesc;
	CfdArm		   *arm = &to->arms[to->count];
	const ScanKeyData *keys = node->biss_ScanKeys;
	int			count = node->biss_NumScanKeys;
	int			first = 0;

	if (to->count == SCANS_MAX || desc == NULL || node->biss_NumRuntimeKeys > 0 || node->biss_NumArrayKeys > 0 ||
		count < 1 || count > 2 || (to->count > 0 && node->biss_RelationDesc != to->index))
		return;
	for (int i = 0; i < count; i++)
	{
		if (keys[i].sk_attno != 1 || keys[i].sk_flags != 0)
			return;
		if (keys[i].sk_strategy >= BTEqualStrategyNumber)
			first = i;
	}
	/* Skip scans with two bounds of the same kind, or without a lower bound. */
	if (keys[first].sk_strategy < BTEqualStrategyNumber ||
		(count == 2 && (keys[first].sk_strategy == BTEqualStrategyNumber ||
						keys[1 - first].sk_strategy >= BTEqualStrategyNumber)))
		return;
	to->index = node->biss_RelationDesc;
	arm->desc = desc;
	arm->count = count;
	arm->behind_equals = keys[first].sk_strategy == BTGreaterStrategyNumber;
	if (!take_value(to->index, &keys[first], &arm->values[0]) ||
		(count == 2 && !take_value(to->index, &keys[1 - first], &arm->values[1])))
		return;
	to->count++;
}

static bool
is_ascending(Relation index)
{
	return cfd_type_code(index->rd_opcintype[0]) != 0 && (index->rd_indoption[0] & INDOPTION_DESC) == 0;
}

static bool
is_searched(const PlanState *plan)
{
	Relation	index = IsA(plan, BitmapIndexScanState) ? ((const BitmapIndexScanState *) plan)->biss_RelationDesc : NULL;

	return index != NULL && is_ascending(index);
}

void
cfd_ahead_plan(BitmapOrState *node)
{
	CfdArms	   *made;

	if (node->nplans < 2 || !is_searched(node->bitmapplans[0]))
		return;
	made = cfd_arms_make(node->ps.state->es_query_cxt, SCANS_MAX);
	for (int i = 0; i < node->nplans; i++)
	{
		if (is_searched(node->bitmapplans[i]))
			add_scan(made, (BitmapIndexScanState *) node->bitmapplans[i]);
	}
	if (made->count >= 2)
		cfd_arms_add(made);
}

void
cfd_ahead_scan(IndexScanDesc scan)
{
	CfdArms	   *group = cfd_arms_of(scan);

	if (group != NULL && !group->asked)
		cfd_arms_ask(group);
}

/* ---------- arrays ---------- */

/* The array of a scan that has a single condition; otherwise NULL. */
static const CfdArray *
array_of(IndexScanDesc scan)
{
	const CfdArray *array = cfd_elements_only(scan);

	return array != NULL && scan->keyData[0].sk_attno == 1 && is_ascending(scan->indexRelation) ? array : NULL;
}

static CfdArms *
group_of_array(IndexScanDesc scan)
{
	CfdArms	   *group = cfd_arms_of(scan);

	if (group != NULL)
		return group;
	group = cfd_arms_make(cfd_elements_of(scan)->context, ELEMENTS_MAX);
	group->index = scan->indexRelation;
	group->scan = scan;
	cfd_arms_add(group);
	return group;
}

/* Makes arms of the array's elements from the current one on, up to `most`. */
static void
take_elements(CfdArms *group, const CfdArray *array, int most)
{
	ScanKeyData key = group->scan->keyData[0];

	cfd_arms_clear(group);
	group->end = array->at;
	while (group->count < most && group->end < array->count)
	{
		CfdArm		   *arm = &group->arms[group->count];

		key.sk_argument = array->elements[group->end];
		if (!take_value(group->index, &key, &arm->values[0]))
			return;
		arm->desc = group->scan;
		arm->count = 1;
		group->count++;
		group->end++;
	}
}

void
cfd_ahead_array(IndexScanDesc scan, bool all)
{
	const CfdArray *array = array_of(scan);
	CfdArms	   *group;

	if (array == NULL || array->count < 2)
		return;
	group = group_of_array(scan);
	if (array->at < group->end)
		return;
	/*
	 * If the scan may end early, search at most for twice the elements that it
	 * has reached.
	 */
	group->window = all ? ELEMENTS_MAX : Min(Max(2 * group->window, 1), ELEMENTS_MAX);
	take_elements(group, array, group->window);
	/*
	 * A single element is searched for by the scan itself, which may guess its
	 * pages.
	 */
	if (group->count > 1)
		cfd_arms_ask(group);
}
