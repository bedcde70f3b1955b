/*
 * build.c
 *	  Rows of an index build, sorted on their way: see build.h.
 *
 * PostgreSQL's sort sees at once that its input is sorted; then it compares
 * neighbours only. The ranks stay the scope of comparisons (bulk/ranks.h) until the
 * statement ends or the next index is built, since the sort comes after the scan.
 * What does not fit into maintenance_work_mem, which PostgreSQL's sort then takes once
 * more, is handed on as it comes.
 *
 * Invariant: as in build.h.
 */
#include "postgres.h"

#include "bulk/build.h"
#include "bulk/ranks.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "miscadmin.h"
#include "types/types.h"
#include "utils/memutils.h"
#include "utils/rel.h"

typedef struct Row
{
	ItemPointerData tid;
	bool		alive;
	bool		null;			/* the leading key */
} Row;

struct CfdBuild
{
	Relation	index;
	IndexBuildCallback callback;
	void	   *state;
	MemoryContext context;		/* rows */
	CfdRanks   *ranks;
	int			columns;
	uint32		limit;			/* rows that fit */
	uint32		count;
	uint32		room;
	bool		passing;		/* rows are handed on as they come */
	Row		   *rows;
	Datum	   *values;			/* row by row */
	bool	   *nulls;
};

/* What the last build's scope lives in. */
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

CfdBuild *
cfd_build_begin(Relation index, IndexBuildCallback callback, void *state)
{
	TupleDesc	desc = RelationGetDescr(index);
	Size		row = sizeof(Row) + desc->natts * (sizeof(Datum) + sizeof(bool)) + 4 * sizeof(uint64);
	CfdBuild   *build;
	uint8		type;

	if (!cfd_enable_bulk_sort || index->rd_rel->relam != BTREE_AM_OID)
		return NULL;
	type = cfd_type_code(index->rd_opcintype[0]);
	if (type == 0)
		return NULL;
	for (int i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attbyval)
			return NULL;
	}
	build = palloc0(sizeof(CfdBuild));
	build->index = index;
	build->callback = callback;
	build->state = state;
	build->context = AllocSetContextCreate(CurrentMemoryContext, "confide index rows",
										   ALLOCSET_DEFAULT_SIZES);
	build->ranks = cfd_ranks_create(new_scope(), type);
	build->columns = desc->natts;
	build->limit = (uint32) Min(maintenance_work_mem * (Size) 1024 / row, CFD_RANK_ROWS_MAX);
	return build;
}

static void
hand_on(CfdBuild *build, uint32 row)
{
	build->callback(build->index, &build->rows[row].tid, build->values + (Size) row * build->columns,
					build->nulls + (Size) row * build->columns, build->rows[row].alive, build->state);
}

/* Too many rows: those that wait go on, and so do all that come. */
static void
give_up(CfdBuild *build)
{
	for (uint32 i = 0; i < build->count; i++)
		hand_on(build, i);
	build->count = 0;
	build->passing = true;
	MemoryContextReset(build->context);
	MemoryContextDelete(scope_context);
	build->ranks = NULL;
}

static void *
grow(CfdBuild *build, void *array, Size size)
{
	size *= build->room;
	return array == NULL ? MemoryContextAllocHuge(build->context, size) : repalloc_huge(array, size);
}

void
cfd_build_row(Relation index, ItemPointer tid, Datum *values, bool *nulls, bool alive, void *arg)
{
	CfdBuild   *build = arg;
	Row		   *row;

	if (!build->passing && build->count == build->limit)
		give_up(build);
	if (build->passing)
	{
		build->callback(index, tid, values, nulls, alive, build->state);
		return;
	}
	if (build->count == build->room)
	{
		build->room = Max(build->room * 2, 4096);
		build->rows = grow(build, build->rows, sizeof(Row));
		build->values = grow(build, build->values, sizeof(Datum) * build->columns);
		build->nulls = grow(build, build->nulls, sizeof(bool) * build->columns);
	}
	row = &build->rows[build->count];
	row->tid = *tid;
	row->alive = alive;
	row->null = nulls[0];
	memcpy(build->values + (Size) build->count * build->columns, values, sizeof(Datum) * build->columns);
	memcpy(build->nulls + (Size) build->count * build->columns, nulls, sizeof(bool) * build->columns);
	build->count++;
	if (!nulls[0])
		cfd_ranks_announce(build->ranks, DatumGetUInt64(values[0]));
}

/* Hands rows on by rank, NULLs where the index has them. */
static void
hand_on_sorted(CfdBuild *build)
{
	uint32		count = build->count;
	bool		descending = (build->index->rd_indoption[0] & INDOPTION_DESC) != 0;
	bool		nulls_first = (build->index->rd_indoption[0] & INDOPTION_NULLS_FIRST) != 0;
	uint32	   *places = MemoryContextAllocHuge(build->context, sizeof(uint32) * (Size) count);
	uint32	   *starts = MemoryContextAllocHuge(build->context, sizeof(uint32) * ((Size) count + 3));
	uint32	   *order = MemoryContextAllocHuge(build->context, sizeof(uint32) * (Size) count);

	/* Groups: NULLs at 0 or count + 1, ranks between. */
	memset(starts, 0, sizeof(uint32) * ((Size) count + 3));
	for (uint32 i = 0; i < count; i++)
	{
		uint32		rank;

		if (build->rows[i].null)
			places[i] = nulls_first ? 0 : count + 1;
		else
		{
			rank = cfd_ranks_of(build->ranks, DatumGetUInt64(build->values[(Size) i * build->columns]));
			rank = Min(rank, count - 1);
			places[i] = descending ? count - rank : rank + 1;
		}
		starts[places[i] + 1]++;
	}
	for (uint32 i = 1; i < count + 3; i++)
		starts[i] += starts[i - 1];
	for (uint32 i = 0; i < count; i++)
		order[starts[places[i]]++] = i;
	for (uint32 i = 0; i < count; i++)
	{
		hand_on(build, order[i]);
		CHECK_FOR_INTERRUPTS();
	}
}

void
cfd_build_end(CfdBuild *build)
{
	if (build->count > 1)
	{
		cfd_ranks_complete(build->ranks);
		cfd_ranks_scope = build->ranks;
		hand_on_sorted(build);
	}
	else if (build->count == 1)
		hand_on(build, 0);
	MemoryContextDelete(build->context);
	pfree(build);
}
