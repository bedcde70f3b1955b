/*
 * build.c
 *	  Sorts the rows of an index build before PostgreSQL does; see build.h.
 *
 * PostgreSQL's sort detects that its input is sorted, and then compares
 * neighbours only. The column-wise order of neighbours is known
 * (index/row_order.h) until the statement ends or the next index is built,
 * because the sort runs after the scan. Rows that do not fit into
 * maintenance_work_mem, an amount that PostgreSQL's sort uses once more, are
 * sorted on disk (index/row_store.h). If there are more rows than the keeper
 * ranks at once, they are passed on as they arrive.
 *
 * Invariant: as in build.h.
 */
#include "postgres.h"

#include "index/build.h"
#include "order/ranks.h"
#include "index/row_order.h"
#include "index/row_store.h"
#include "catalog/pg_am.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "session/channel.h"
#include "utils/rel.h"
#include "value/promote.h"

typedef struct Row
{
	ItemPointerData tid;
	bool		alive;
} Row;

/* Distance at which a row's memory is fetched. */
#define ROWS_AHEAD 16

struct CfdBuild
{
	Relation	index;
	IndexBuildCallback callback;
	void	   *state;
	MemoryContext context;		/* memory context of the rows */
	CfdRowOrder *order;
	int			columns;
	bool		by_value;		/* all index columns are passed by value */
	bool		passing;		/* rows are passed on as they arrive */
	bool		ascending;		/* rows arrive in TID order */
	Size		row_size;		/* memory per row, and in total for values not passed by value */
	Size		used;
	uint32		count;			/* rows waiting */
	CfdRowStore *store;			/* holds the rows if they do not fit into memory */
	uint32		room;
	Row		   *rows;
	Datum	   *values;			/* row by row */
	bool	   *nulls;
};

/* Memory context of the last build's scope. */
static MemoryContext scope_context = NULL;

static void
scope_gone(void *arg)
{
	if (scope_context == arg)
		scope_context = NULL;
}

static MemoryContext
new_scope(void)
{
	MemoryContextCallback *at_end;

	if (scope_context != NULL)
		MemoryContextDelete(scope_context);
	scope_context = AllocSetContextCreate(CurTransactionContext, "confide index build",
										  ALLOCSET_DEFAULT_SIZES);
	at_end = MemoryContextAllocZero(scope_context, sizeof(MemoryContextCallback));
	at_end->func = scope_gone;
	at_end->arg = scope_context;
	MemoryContextRegisterResetCallback(scope_context, at_end);
	return scope_context;
}

static bool
all_by_value(TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attbyval)
			return false;
	}
	return true;
}

void
cfd_build_tell(Relation table, Relation index)
{
	const CfdColumns *columns;
	bool		told = false;

	if (index->rd_rel->relam != BTREE_AM_OID)
		return;
	columns = cfd_columns(table);
	if (columns->count == 0)
		return;
	columns = cfd_open_columns(table);
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		for (int n = 0; n < columns->count; n++)
		{
			CfdWireIndexBuilt body = {.partition = columns->column[n].partition};

			if (columns->column[n].index != index->rd_index->indkey.values[i] - 1)
				continue;
			cfd_send(CFD_KIND_INDEX_BUILT, &body, sizeof(body), NULL, 0);
			told = true;
		}
	}
	/* Opening a column logs what has changed about it. */
	if (told)
		cfd_reopen_columns(table);
}

CfdBuild *
cfd_build_begin(Relation index, IndexBuildCallback callback, void *state)
{
	TupleDesc	desc = RelationGetDescr(index);
	CfdRowOrder *order;
	CfdBuild   *build;

	if (!cfd_enable_bulk_sort || index->rd_rel->relam != BTREE_AM_OID)
		return NULL;
	order = cfd_row_order_create(new_scope(), index);
	if (order == NULL)
		return NULL;
	build = palloc0(sizeof(CfdBuild));
	build->index = index;
	build->callback = callback;
	build->state = state;
	build->context = AllocSetContextCreate(CurrentMemoryContext, "confide index rows",
										   ALLOCSET_DEFAULT_SIZES);
	build->order = order;
	build->columns = desc->natts;
	build->by_value = all_by_value(desc);
	build->ascending = true;
	/* Rows are kept in arrays. Sorting needs two more numbers per row. */
	build->row_size = sizeof(Row) + desc->natts * (sizeof(Datum) + sizeof(bool)) + 2 * sizeof(uint32) +
		cfd_row_order_row_size(order);
	return build;
}

static Datum *
values_of(const CfdBuild *build, uint32 row)
{
	return build->values + (Size) row * build->columns;
}

static bool *
nulls_of(const CfdBuild *build, uint32 row)
{
	return build->nulls + (Size) row * build->columns;
}

static void
cfd_build_hand_on(CfdBuild *build, uint32 row)
{
	build->callback(build->index, &build->rows[row].tid, values_of(build, row), nulls_of(build, row),
					build->rows[row].alive, build->state);
}

static void
hand_on_stored(CfdBuild *build, CfdStoredRow *row)
{
	build->callback(build->index, row->tid, row->values, row->nulls, row->alive, build->state);
}

/* There are too many rows to be ranked: pass on those that wait and all that follow. */
static void
give_up(CfdBuild *build)
{
	CfdStoredRow row;

	if (build->store == NULL)
	{
		for (uint32 i = 0; i < build->count; i++)
			cfd_build_hand_on(build, i);
	}
	else
	{
		cfd_row_store_rewind(build->store);
		while (cfd_row_store_next(build->store, &row))
			hand_on_stored(build, &row);
		cfd_row_store_end(build->store);
		build->store = NULL;
	}
	build->count = 0;
	build->passing = true;
	MemoryContextReset(build->context);
	cfd_row_order_drop(build->order);
	build->order = NULL;
}

/* The memory limit is reached: move the rows to disk. */
static void
cfd_build_spill(CfdBuild *build)
{
	MemoryContext before = MemoryContextSwitchTo(GetMemoryChunkContext(build));

	build->store = cfd_row_store_create(build->index);
	for (uint32 i = 0; i < build->count; i++)
		cfd_row_store_put(build->store, &build->rows[i].tid, build->rows[i].alive, values_of(build, i),
						  nulls_of(build, i));
	MemoryContextSwitchTo(before);
	MemoryContextReset(build->context);
}

static void *
grow(CfdBuild *build, void *array, Size size)
{
	size *= build->room;
	return array == NULL ? MemoryContextAllocHuge(build->context, size) : repalloc_huge(array, size);
}

static void
cfd_build_make_room(CfdBuild *build)
{
	build->room = Max(build->room * 2, 4096);
	build->rows = grow(build, build->rows, sizeof(Row));
	build->values = grow(build, build->values, sizeof(Datum) * build->columns);
	build->nulls = grow(build, build->nulls, sizeof(bool) * build->columns);
}

/* Values passed by reference are valid only until the scan advances, so copy them. */
static void
copy_values(CfdBuild *build, Datum *values, const bool *nulls)
{
	TupleDesc	desc = RelationGetDescr(build->index);
	MemoryContext before = MemoryContextSwitchTo(build->context);

	for (int i = 0; i < build->columns; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (nulls[i] || attribute->attbyval)
			continue;
		values[i] = datumCopy(values[i], false, attribute->attlen);
		build->used += GetMemoryChunkSpace(DatumGetPointer(values[i]));
	}
	MemoryContextSwitchTo(before);
}

static void
cfd_build_keep(CfdBuild *build, ItemPointer tid, const Datum *values, const bool *nulls, bool alive)
{
	Row		   *row;

	if (build->count == build->room)
		cfd_build_make_room(build);
	row = &build->rows[build->count];
	row->tid = *tid;
	row->alive = alive;
	build->ascending &= build->count == 0 || ItemPointerCompare(&row[-1].tid, tid) < 0;
	memcpy(values_of(build, build->count), values, sizeof(Datum) * build->columns);
	memcpy(nulls_of(build, build->count), nulls, sizeof(bool) * build->columns);
	if (!build->by_value)
		copy_values(build, values_of(build, build->count), nulls);
	build->used += build->row_size;
}

void
cfd_build_row(Relation index, ItemPointer tid, Datum *values, bool *nulls, bool alive, void *arg)
{
	CfdBuild   *build = arg;

	if (!build->passing && build->count >= (uint32) cfd_bulk_sort_rows)
		give_up(build);
	if (build->passing)
	{
		build->callback(index, tid, values, nulls, alive, build->state);
		return;
	}
	if (build->store == NULL && build->used > maintenance_work_mem * (Size) 1024)
		cfd_build_spill(build);
	if (build->store != NULL)
		cfd_row_store_put(build->store, tid, alive, values, nulls);
	else
		cfd_build_keep(build, tid, values, nulls, alive);
	build->count++;
	cfd_row_order_add(build->order, values, nulls);
}

static int
compare_tids(const void *a, const void *b, void *arg)
{
	const Row  *rows = ((const CfdBuild *) arg)->rows;

	return ItemPointerCompare((ItemPointer) &rows[*(const uint32 *) a].tid,
							  (ItemPointer) &rows[*(const uint32 *) b].tid);
}

/* PostgreSQL sorts equal rows by TID. ends[i] is the end of rank i in `order`. */
static void
sort_equal_rows(CfdBuild *build, uint32 *order, const uint32 *ends, uint32 distinct)
{
	uint32		start = 0;

	for (uint32 i = 0; i < distinct; i++)
	{
		if (ends[i] - start > 1)
			qsort_arg(order + start, ends[i] - start, sizeof(uint32), compare_tids, build);
		start = ends[i];
		CHECK_FOR_INTERRUPTS();
	}
}

/* Row numbers in rank order. Rows of equal rank stay in order of arrival. */
static uint32 *
order_rows(CfdBuild *build, const uint32 *ranks, uint32 distinct)
{
	uint32	   *starts = MemoryContextAllocHuge(build->context, sizeof(uint32) * ((Size) distinct + 1));
	uint32	   *order = MemoryContextAllocHuge(build->context, sizeof(uint32) * (Size) build->count);

	memset(starts, 0, sizeof(uint32) * ((Size) distinct + 1));
	for (uint32 i = 0; i < build->count; i++)
		starts[ranks[i] + 1]++;
	for (uint32 i = 1; i <= distinct; i++)
		starts[i] += starts[i - 1];
	for (uint32 i = 0; i < build->count; i++)
		order[starts[ranks[i]]++] = i;
	if (!build->ascending)
		sort_equal_rows(build, order, starts, distinct);
	pfree(starts);
	return order;
}

/* Has the memory of rows that follow fetched: they were read in another order than they are passed on in. */
static inline void
cfd_build_fetch(const CfdBuild *build, const uint32 *order, uint32 at)
{
	uint32		row;

	if (build->count - at <= 2 * ROWS_AHEAD)
		return;
	row = order[at + 2 * ROWS_AHEAD];
	__builtin_prefetch(&build->rows[row]);
	__builtin_prefetch(values_of(build, row));
	__builtin_prefetch(nulls_of(build, row));
	cfd_row_order_fetch(build->order, values_of(build, order[at + ROWS_AHEAD]));
}

/* Has the rows in memory ranked and passes them on in rank order. */
static void
hand_on_sorted(CfdBuild *build)
{
	const uint32 *ranks;
	uint32	   *order;
	uint32		distinct;

	if (cfd_row_order_waits(build->order))
	{
		for (uint32 i = 0; i < build->count; i++)
			cfd_row_order_add_again(build->order, values_of(build, i), nulls_of(build, i));
	}
	ranks = cfd_row_order_rank(build->order, &distinct);
	for (uint32 i = 0; i < build->count; i++)
		cfd_row_order_place(build->order, values_of(build, i), nulls_of(build, i), ranks[i]);
	order = order_rows(build, ranks, distinct);
	cfd_row_order_tell(build->order);
	for (uint32 i = 0; i < build->count; i++)
	{
		cfd_build_fetch(build, order, i);
		cfd_build_hand_on(build, order[i]);
		CHECK_FOR_INTERRUPTS();
	}
}

/* The same for rows on disk. */
static void
hand_on_stored_sorted(CfdBuild *build)
{
	uint32	   *ranks = MemoryContextAllocHuge(build->context, sizeof(uint32) * (Size) build->count);
	CfdStoredRow row;
	uint32		distinct;

	if (cfd_row_order_waits(build->order))
	{
		cfd_row_store_rewind(build->store);
		while (cfd_row_store_next(build->store, &row))
			cfd_row_order_add_again(build->order, row.values, row.nulls);
	}
	memcpy(ranks, cfd_row_order_rank(build->order, &distinct), sizeof(uint32) * (Size) build->count);
	cfd_row_store_rewind(build->store);
	for (uint32 i = 0; i < build->count && cfd_row_store_next(build->store, &row); i++)
	{
		cfd_row_order_place(build->order, row.values, row.nulls, ranks[i]);
		cfd_row_store_rank(build->store, ranks[i]);
	}
	pfree(ranks);
	cfd_row_store_sort(build->store);
	cfd_row_order_tell(build->order);
	while (cfd_row_store_next_sorted(build->store, &row))
		hand_on_stored(build, &row);
	cfd_row_store_end(build->store);
}

void
cfd_build_end(CfdBuild *build)
{
	if (build->store != NULL)
		hand_on_stored_sorted(build);
	else if (build->count > 1)
		hand_on_sorted(build);
	else if (build->count == 1)
		cfd_build_hand_on(build, 0);
	MemoryContextDelete(build->context);
	pfree(build);
}
