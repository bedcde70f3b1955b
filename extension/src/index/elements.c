/*
 * elements.c
 *	  B-tree scans with array conditions, one element after the other; see
 *	  elements.h.
 *
 * The access method gets the conditions with an element in place of its array.
 * At the end of a scan the next element takes its place, and the scan begins
 * again.
 *
 * Invariant: as in elements.h.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "compat/compat.h"
#include "index/ahead.h"
#include "index/elements.h"
#include "index/search.h"
#include "order/ranks.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "value/types.h"

/* Those of all scans that are open. */
static CfdElements *all_elements = NULL;

CfdElements *
cfd_elements_of(IndexScanDesc scan)
{
	CfdElements *at = all_elements;

	while (at != NULL && at->scan != scan)
		at = at->next;
	return at;
}

const CfdArray *
cfd_elements_only(IndexScanDesc scan)
{
	const CfdElements *elements = cfd_elements_of(scan);

	return elements != NULL && scan->numberOfKeys == 1 ? &elements->arrays[0] : NULL;
}

static void
cfd_elements_forget(void *arg)
{
	for (CfdElements **at = &all_elements; *at != NULL; at = &(*at)->next)
	{
		if (*at == arg)
		{
			*at = (*at)->next;
			return;
		}
	}
}

/* ---------- arrays ---------- */

typedef struct ElementOrder
{
	FmgrInfo	function;
	Oid			collation;
	bool		descending;
} ElementOrder;

static int
cfd_elements_compare(const void *a, const void *b, void *arg)
{
	ElementOrder *order = arg;
	int			result = DatumGetInt32(FunctionCall2Coll(&order->function, order->collation,
														 *(const Datum *) a, *(const Datum *) b));

	return order->descending ? -(result > 0) + (result < 0) : result;
}

/* Sorts elements and removes duplicates. Protected ones are ranked together, in the current context. */
static int
cfd_elements_sort(Datum *elements, int count, uint8 type, ElementOrder *order)
{
	int			kept = 1;

	if (type != 0)
	{
		CfdRanks   *ranks = cfd_ranks_create(CurrentMemoryContext, type);

		for (int i = 0; i < count; i++)
		{
			if (DatumGetUInt64(elements[i]) != 0)
				cfd_ranks_announce(ranks, DatumGetUInt64(elements[i]));
		}
		cfd_ranks_tell(ranks);
	}
	qsort_arg(elements, count, sizeof(Datum), cfd_elements_compare, order);
	for (int i = 1; i < count; i++)
	{
		if (cfd_elements_compare(&elements[kept - 1], &elements[i], order) != 0)
			elements[kept++] = elements[i];
	}
	return kept;
}

/*
 * Reads the array of a condition into the current context. Returns false if it
 * has no elements, or if these have no order.
 */
static bool
cfd_elements_read(Relation index, const ScanKeyData *key, CfdArray *to)
{
	int			column = key->sk_attno - 1;
	Oid			type = OidIsValid(key->sk_subtype) ? key->sk_subtype : index->rd_opcintype[column];
	Oid			compare = get_opfamily_proc(index->rd_opfamily[column], type, type, BTORDER_PROC);
	ArrayType  *array = DatumGetArrayTypePCopy(key->sk_argument);
	ElementOrder order = {.collation = key->sk_collation,.descending = (index->rd_indoption[column] & INDOPTION_DESC) != 0};
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext own;
	bool	   *nulls;
	int			count;
	int			number = 0;
	int16		length;
	bool		by_value;
	char		align;

	get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &by_value, &align);
	deconstruct_array(array, ARR_ELEMTYPE(array), length, by_value, align, &to->elements, &nulls, &count);
	for (int i = 0; i < count; i++)
	{
		if (!nulls[i])
			to->elements[number++] = to->elements[i];
	}
	if (number == 0 || !OidIsValid(compare))
		return false;
	own = AllocSetContextCreate(outer, "Confide ranks of an array", ALLOCSET_SMALL_SIZES);
	PG_TRY();
	{
		MemoryContextSwitchTo(own);
		fmgr_info(compare, &order.function);
		to->count = cfd_elements_sort(to->elements, number, cfd_type_code(type), &order);
	}
	PG_FINALLY();
	{
		MemoryContextSwitchTo(outer);
		/* Deleting the context also drops the ranks. */
		MemoryContextDelete(own);
	}
	PG_END_TRY();
	return true;
}

/*
 * The array by which a column is looked up, or -1. "equal" says whether the
 * column is bound to one value, by an element or otherwise.
 */
static int
array_for(const ScanKeyData *keys, int count, AttrNumber column, bool *equal)
{
	int			found = -1;

	*equal = false;
	for (int i = 0; i < count; i++)
	{
		const ScanKeyData *key = &keys[i];

		if (key->sk_attno != column || key->sk_strategy != BTEqualStrategyNumber)
			continue;
		if (key->sk_flags == SK_SEARCHARRAY && found < 0)
			found = i;
		*equal |= key->sk_flags == 0;
	}
	if (*equal)
		return -1;
	*equal = found >= 0;
	return found;
}

/* Reads the arrays of a scan that begins. Returns NULL if there are none. */
static CfdElements *
cfd_elements_split(IndexScanDesc scan, const ScanKeyData *keys, int count)
{
	Relation	index = scan->indexRelation;
	MemoryContext context = AllocSetContextCreate(GetMemoryChunkContext(scan), "Confide elements", ALLOCSET_SMALL_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(context);
	CfdElements *made = palloc0(sizeof(CfdElements));

	made->context = context;
	made->scan = scan;
	made->arrays = palloc0(sizeof(CfdArray) * count);
	for (AttrNumber column = 1; column <= IndexRelationGetNumberOfKeyAttributes(index); column++)
	{
		CfdArray   *array = &made->arrays[made->count];
		bool		equal;
		int			key = array_for(keys, count, column, &equal);

		/* The rows would come in another order than PostgreSQL's. */
		if (!equal && CFD_BT_ARRAYS_IN_ORDER)
			break;
		if (key < 0 || !cfd_elements_read(index, &keys[key], array))
			continue;
		array->key = key;
		made->count++;
	}
	MemoryContextSwitchTo(outer);
	if (made->count == 0)
	{
		MemoryContextDelete(context);
		return NULL;
	}
	made->at_end.func = cfd_elements_forget;
	made->at_end.arg = made;
	MemoryContextRegisterResetCallback(context, &made->at_end);
	made->next = all_elements;
	return all_elements = made;
}

/* ---------- scans ---------- */

/* Begins the scan for the present elements. What was marked remains so. */
static void
cfd_elements_begin(const CfdElements *elements)
{
	IndexScanDesc scan = elements->scan;
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	BTScanPosData mark = so->markPos;

	for (int i = 0; i < elements->count; i++)
	{
		const CfdArray *array = &elements->arrays[i];

		scan->keyData[array->key].sk_argument = array->elements[array->at];
	}
	BTScanPosInvalidate(so->markPos);
	btrescan(scan, NULL, 0, NULL, 0);
	so->markPos = mark;
}

/* To the elements after the present ones; false: there are none, and it begins anew. */
static bool
cfd_elements_advance(CfdElements *elements, bool forward)
{
	for (int i = elements->count - 1; i >= 0; i--)
	{
		CfdArray   *array = &elements->arrays[i];

		array->at += forward ? 1 : -1;
		if (array->at >= 0 && array->at < array->count)
			return true;
		array->at = forward ? 0 : array->count - 1;
	}
	return false;
}

bool
cfd_elements_next(CfdElements *elements, ScanDirection direction, bool all)
{
	IndexScanDesc scan = elements->scan;
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	bool		forward = ScanDirectionIsForward(direction);

	if (!BTScanPosIsValid(so->currPos))
	{
		for (int i = 0; i < elements->count; i++)
			elements->arrays[i].at = forward ? 0 : elements->arrays[i].count - 1;
		cfd_elements_begin(elements);
	}
	for (;;)
	{
		if (BTScanPosIsValid(so->currPos))
			cfd_search_before_next(scan, forward);
		else
		{
			if (forward)
				cfd_ahead_array(scan, all);
			cfd_search_before_first(scan, forward);
		}
		if (btgettuple(scan, direction))
			return true;
		if (!cfd_elements_advance(elements, forward))
			return false;
		cfd_elements_begin(elements);
	}
}

static bool
has_array(const ScanKeyData *keys, int count)
{
	for (int i = 0; i < count; i++)
	{
		if ((keys[i].sk_flags & SK_SEARCHARRAY) != 0)
			return true;
	}
	return false;
}

void
cfd_elements_rescan(IndexScanDesc scan, ScanKey keys, int count, ScanKey orders, int order_count)
{
	CfdElements *elements = cfd_elements_of(scan);
	ScanKeyData *changed;

	if (keys != NULL)
	{
		if (elements != NULL)
			MemoryContextDelete(elements->context);
		elements = NULL;
		if (cfd_enable_index_search && scan->parallel_scan == NULL && has_array(keys, count))
			elements = cfd_elements_split(scan, keys, count);
	}
	if (keys == NULL || elements == NULL)
	{
		btrescan(scan, keys, count, orders, order_count);
		return;
	}
	changed = MemoryContextAlloc(elements->context, sizeof(ScanKeyData) * count);
	memcpy(changed, keys, sizeof(ScanKeyData) * count);
	for (int i = 0; i < elements->count; i++)
	{
		const CfdArray *array = &elements->arrays[i];

		changed[array->key].sk_flags = 0;
		changed[array->key].sk_argument = array->elements[0];
	}
	btrescan(scan, changed, count, orders, order_count);
}

void
cfd_elements_mark(IndexScanDesc scan)
{
	CfdElements *elements = cfd_elements_of(scan);

	for (int i = 0; elements != NULL && i < elements->count; i++)
		elements->arrays[i].marked = elements->arrays[i].at;
	btmarkpos(scan);
}

void
cfd_elements_restore(IndexScanDesc scan)
{
	CfdElements *elements = cfd_elements_of(scan);
	bool		moved = false;

	for (int i = 0; elements != NULL && i < elements->count; i++)
	{
		moved |= elements->arrays[i].at != elements->arrays[i].marked;
		elements->arrays[i].at = elements->arrays[i].marked;
	}
	if (moved)
	{
		cfd_elements_begin(elements);
		/* The pages that follow are read by these conditions. */
		_bt_preprocess_keys(scan);
	}
	btrestrpos(scan);
}

void
cfd_elements_end(IndexScanDesc scan)
{
	CfdElements *elements = cfd_elements_of(scan);

	if (elements != NULL)
		MemoryContextDelete(elements->context);
	btendscan(scan);
}
