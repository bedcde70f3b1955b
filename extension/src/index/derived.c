/*
 * derived.c
 *	  Values of expressions in B-trees; see derived.h.
 *
 * Partition numbers are cached by index until its relcache entry, or that of
 * its table, is invalidated; after a reconnect they are asked for again.
 *
 * Invariants: as in derived.h.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/sysattr.h"
#include "catalog/pg_am.h"
#include "cell/cell.h"
#include "common/hashfn.h"
#include "index/derived.h"
#include "lib/stringinfo.h"
#include "nodes/bitmapset.h"
#include "optimizer/optimizer.h"
#include "session/arena.h"
#include "session/channel.h"
#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "value/promote.h"
#include "value/types.h"

/* Rows of a build that are promoted together. */
#define BUILD_ROWS 1024
#define STACK_ITEMS 64

/* What a column of an index holds. Type 0: no values of an expression. */
typedef struct Column
{
	uint8		type;
	int			attribute;
	int32		typmod;
	uint32		partition;
} Column;

typedef struct Known
{
	Oid			index;			/* key */
	Oid			table;
	uint32		generation;		/* channel generation that opened the partitions; 0: none */
	Column		columns[INDEX_MAX_KEYS];
} Known;

static HTAB *known = NULL;

/* ---------- what expressions are made of ---------- */

Bitmapset *
cfd_derived_sources(Oid table, Node *expression, int *number)
{
	Bitmapset  *used = NULL;
	Bitmapset  *sources = NULL;
	int			member = -1;

	*number = 0;
	pull_varattnos(expression, 1, &used);
	while ((member = bms_next_member(used, member)) >= 0)
	{
		int			attribute = member + FirstLowInvalidHeapAttributeNumber;
		Oid			type = attribute > 0 ? get_atttype(table, attribute) : InvalidOid;

		if (cfd_type_code(type) != 0)
			sources = bms_add_member(sources, attribute);
		else if (attribute == 0 || cfd_family_contains(type))
		{
			*number = attribute;
			return NULL;
		}
	}
	return sources;
}

/* The attribute number under which values made of these columns are kept. */
static int
attribute_of(const Bitmapset *sources)
{
	uint32		hash = 0;
	int			member = -1;

	if (bms_num_members(sources) == 1)
		return CFD_DERIVED_ATTRIBUTE + bms_singleton_member(sources);
	while ((member = bms_next_member(sources, member)) >= 0)
		hash = hash_combine(hash, hash_bytes_uint32(member));
	return CFD_DERIVED_SEVERAL + (hash & 0x3fffffff);
}

static int
compare_names(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

/* The name of values made of these columns. */
static char *
derived_name(Oid table, const Bitmapset *sources)
{
	StringInfoData name;
	List	   *names = NIL;
	ListCell   *cell;
	int			member = -1;

	while ((member = bms_next_member(sources, member)) >= 0)
		names = lappend(names, get_attname(table, member, false));
	if (list_length(names) == 1)
		return linitial(names);
	list_sort(names, compare_names);
	initStringInfo(&name);
	foreach(cell, names)
		appendStringInfo(&name, "%c%s", CFD_DERIVED_MARK, (char *) lfirst(cell));
	return name.data;
}

/* Fills in the columns of an index, and the names of their values unless `names` is NULL. */
static void
describe(Relation index, Column *columns, char **names)
{
	List	   *expressions = RelationGetIndexExpressions(index);
	ListCell   *next = list_head(expressions);
	Oid			table = index->rd_index->indrelid;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(index), i);
		Bitmapset  *sources;
		int			number;

		columns[i].type = 0;
		if (index->rd_index->indkey.values[i] != 0)
			continue;
		if (cfd_type_code(attribute->atttypid) != 0)
		{
			sources = cfd_derived_sources(table, lfirst(next), &number);
			columns[i].type = cfd_type_code(attribute->atttypid);
			columns[i].attribute = attribute_of(sources);
			columns[i].typmod = attribute->atttypmod;
			columns[i].partition = 0;
			if (names != NULL)
				names[i] = derived_name(table, sources);
		}
		next = lnext(expressions, next);
	}
}

bool
cfd_index_derives(Relation index)
{
	if (index->rd_rel->relam != BTREE_AM_OID)
		return false;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (index->rd_index->indkey.values[i] == 0 &&
			cfd_type_code(TupleDescAttr(RelationGetDescr(index), i)->atttypid) != 0)
			return true;
	}
	return false;
}

List *
cfd_derived_kinds(Relation table)
{
	List	   *kinds = NIL;
	ListCell   *cell;

	foreach(cell, RelationGetIndexList(table))
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);
		Column		columns[INDEX_MAX_KEYS];
		int			count = 0;

		if (cfd_index_derives(index))
		{
			count = IndexRelationGetNumberOfKeyAttributes(index);
			describe(index, columns, NULL);
		}
		for (int i = 0; i < count; i++)
		{
			CfdWireLiveColumn *kind;

			if (columns[i].type == 0)
				continue;
			kind = palloc0(sizeof(CfdWireLiveColumn));
			kind->attribute = columns[i].attribute;
			kind->typmod = columns[i].typmod;
			kind->t = columns[i].type;
			kinds = lappend(kinds, kind);
		}
		index_close(index, AccessShareLock);
	}
	return kinds;
}

/* ---------- partitions ---------- */

static void
forget_derived(Datum arg, Oid relation)
{
	HASH_SEQ_STATUS scan;
	Known	   *entry;

	(void) arg;
	hash_seq_init(&scan, known);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (!OidIsValid(relation) || relation == entry->index || relation == entry->table)
			entry->generation = 0;
	}
}

static void
begin_to_know(void)
{
	HASHCTL		control = {.keysize = sizeof(Oid),.entrysize = sizeof(Known)};

	if (known != NULL)
		return;
	known = hash_create("confide values of indexes", 16, &control, HASH_ELEM | HASH_BLOBS);
	CacheRegisterRelcacheCallback(forget_derived, (Datum) 0);
}

/* Opens the partitions of an index. The result is valid until the next call. */
static const Column *
open_columns(Relation table, Relation index)
{
	Oid			oid = RelationGetRelid(index);
	Column		columns[INDEX_MAX_KEYS];
	char	   *names[INDEX_MAX_KEYS];
	Known	   *entry;

	begin_to_know();
	cfd_begin();
	entry = hash_search(known, &oid, HASH_FIND, NULL);
	if (entry != NULL && entry->generation == cfd_channel.generation)
		return entry->columns;
	describe(index, columns, names);
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Column	   *column = &columns[i];

		if (column->type != 0)
			column->partition = cfd_open_derived(table, names[i], column->attribute, column->typmod, column->type);
	}
	entry = hash_search(known, &oid, HASH_ENTER, NULL);
	entry->table = index->rd_index->indrelid;
	memcpy(entry->columns, columns, sizeof(columns));
	entry->generation = cfd_channel.generation;
	return entry->columns;
}

void
cfd_derived_tell(Relation table, Relation index)
{
	Column		columns[INDEX_MAX_KEYS];
	int			count = IndexRelationGetNumberOfKeyAttributes(index);
	Oid			oid = RelationGetRelid(index);
	Known	   *entry;

	if (!cfd_index_derives(index))
		return;
	memcpy(columns, open_columns(table, index), sizeof(columns));
	for (int i = 0; i < count; i++)
	{
		CfdWireIndexBuilt body = {.partition = columns[i].partition};

		if (columns[i].type != 0)
			cfd_send(CFD_KIND_INDEX_BUILT, &body, sizeof(body), NULL, 0);
	}
	/* Opening a partition logs what has changed about it. */
	entry = hash_search(known, &oid, HASH_FIND, NULL);
	if (entry != NULL)
		entry->generation = 0;
	(void) open_columns(table, index);
}

void
cfd_derived_promote(Relation table, Relation index, Datum *values, const bool *nulls, int rows)
{
	const Column *columns = open_columns(table, index);
	int			natts = RelationGetDescr(index)->natts;
	int			keys = IndexRelationGetNumberOfKeyAttributes(index);
	CfdPromotion stack[STACK_ITEMS];
	CfdPromotion *items = (int64) rows * keys <= STACK_ITEMS ? stack : palloc(sizeof(CfdPromotion) * rows * keys);
	int			count = 0;
	int			done = 0;

	for (int at = 0; at < rows * natts; at++)
	{
		const Column *column = &columns[at % natts];

		if (at % natts < keys && column->type != 0 && !nulls[at])
			items[count++] = (CfdPromotion) {.fid = DatumGetUInt64(values[at]),.partition = column->partition};
	}
	if (count > 0)
		cfd_promote(table, items, count);
	/* Invalidations may have cleared the numbers, but not the rest. */
	for (int at = 0; at < rows * natts; at++)
	{
		if (at % natts < keys && columns[at % natts].type != 0 && !nulls[at])
			values[at] = UInt64GetDatum(items[done++].fid);
	}
	if (items != stack)
		pfree(items);
}

/* ---------- builds ---------- */

struct CfdDeriving
{
	Relation	table;
	Relation	index;
	IndexBuildCallback callback;
	void	   *state;
	MemoryContext context;		/* copies of what is not passed by value */
	bool		releasing;		/* nothing but the rows needs the statement's values */
	int			natts;
	int			count;
	ItemPointerData tids[BUILD_ROWS];
	bool		alive[BUILD_ROWS];
	Datum	   *values;			/* row by row */
	bool	   *nulls;
};

CfdDeriving *
cfd_deriving_begin(Relation table, Relation index, IndexBuildCallback callback, void *state)
{
	CfdDeriving *deriving = palloc0(sizeof(CfdDeriving));

	deriving->table = table;
	deriving->index = index;
	deriving->callback = callback;
	deriving->state = state;
	deriving->context = AllocSetContextCreate(CurrentMemoryContext, "confide values of an index", ALLOCSET_DEFAULT_SIZES);
	deriving->releasing = !cfd_arena_in_use() && !cfd_arena_portals_open();
	deriving->natts = RelationGetDescr(index)->natts;
	deriving->values = palloc(sizeof(Datum) * BUILD_ROWS * deriving->natts);
	deriving->nulls = palloc(sizeof(bool) * BUILD_ROWS * deriving->natts);
	return deriving;
}

static void
pass_on(CfdDeriving *deriving)
{
	int			natts = deriving->natts;

	cfd_derived_promote(deriving->table, deriving->index, deriving->values, deriving->nulls, deriving->count);
	if (deriving->releasing)
		cfd_arena_release();
	for (int row = 0; row < deriving->count; row++)
		deriving->callback(deriving->index, &deriving->tids[row], deriving->values + row * natts,
						   deriving->nulls + row * natts, deriving->alive[row], deriving->state);
	deriving->count = 0;
	MemoryContextReset(deriving->context);
}

void
cfd_deriving_row(Relation index, ItemPointer tid, Datum *values, bool *nulls, bool alive, void *arg)
{
	CfdDeriving *deriving = arg;
	TupleDesc	desc = RelationGetDescr(index);
	int			row = deriving->count;
	MemoryContext before = MemoryContextSwitchTo(deriving->context);

	for (int i = 0; i < deriving->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		int			at = row * deriving->natts + i;

		deriving->nulls[at] = nulls[i];
		deriving->values[at] = nulls[i] ? (Datum) 0 : datumCopy(values[i], attribute->attbyval, attribute->attlen);
	}
	MemoryContextSwitchTo(before);
	deriving->tids[row] = *tid;
	deriving->alive[row] = alive;
	deriving->count++;
	if (deriving->count == BUILD_ROWS)
		pass_on(deriving);
}

void
cfd_deriving_end(CfdDeriving *deriving)
{
	if (deriving->count > 0)
		pass_on(deriving);
	MemoryContextDelete(deriving->context);
	pfree(deriving->values);
	pfree(deriving->nulls);
	pfree(deriving);
}
