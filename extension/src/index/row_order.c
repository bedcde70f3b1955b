/*
 * row_order.c
 *	  The order of an index build's rows; see row_order.h.
 *
 * Plain key columns take part. Numbers are sent to the keeper as they are,
 * while the rows arrive. Other plain keys are first ranked by PostgreSQL's
 * sort (order/plain_sort.h), and for that all rows are needed a second time.
 *
 * The order derived from neighbours is stored as ranks of the first n key
 * columns, for each n. If two rows have equal ranks up to a column, their
 * values in that column compare as the ranks that include the column do.
 *
 * Invariant: as in row_order.h.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "order/map.h"
#include "order/plain.h"
#include "order/plain_sort.h"
#include "index/row_order.h"
#include "known/known.h"
#include "order/set.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "session/channel.h"
#include "ops/evaluate.h"
#include "value/types.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Number of rows whose keys are sent in one message. */
#define SEND_ROWS 4096

typedef struct Key
{
	uint8		type;			/* 0: plain */
	Oid			number;			/* type of a plain numeric key */
	CfdPlainSort *sort;			/* for any other plain key */
	uint32	   *ranks;			/* the ranks it found, by row */
	bool		descending;
	CfdMapRange range;			/* protected key: range of its values */
	CfdMap		map;			/* ranks of their rows */
	const uint32 *before;		/* by rank: rank of the preceding columns; NULL: there are none */
	const uint32 *through;		/* ... including this column; NULL: the rank itself */
} Key;

struct CfdRowOrder
{
	CfdSource	known;			/* must be first: passed to callbacks as CfdSource */
	MemoryContext context;
	MemoryContextCallback at_end;
	int			key_count;
	Key		   *keys;
	CfdSet		set;
	uint8		key_of[CFD_RANK_COLUMNS_MAX];	/* key that a column of the set belongs to */
	bool		waits;			/* for ranks of plain keys */
	uint32		row;			/* rows sent or waiting to be sent */
	uint32		word_rows;		/* rows waiting to be sent */
	uint64	   *words;			/* their keys, column by column */
};


static void
cfd_row_order_forget(void *arg)
{
	CfdRowOrder *order = arg;

	cfd_known_drop_source(&order->known);
	cfd_set_reset(&order->set);
}

/* ---------- keys ---------- */

/*
 * Adds a column to the set. If the set is full, records one column more than
 * allowed, which makes ranking impossible.
 */
static CfdRankKey *
cfd_row_order_add_column(CfdRowOrder *order, int key)
{
	static CfdRankKey none;

	if (order->set.columns >= CFD_RANK_COLUMNS_MAX)
	{
		order->set.columns = CFD_RANK_COLUMNS_MAX + 1;
		return &none;
	}
	order->key_of[order->set.columns] = (uint8) key;
	return &order->set.keys[order->set.columns++];
}

static void
describe_key(CfdRowOrder *order, Relation index, int number)
{
	Key		   *key = &order->keys[number];
	Oid			type = index->rd_opcintype[number];
	bool		nulls_first = (index->rd_indoption[number] & INDOPTION_NULLS_FIRST) != 0;
	CfdRankKey *column;

	key->type = cfd_type_code(type);
	key->descending = (index->rd_indoption[number] & INDOPTION_DESC) != 0;
	if (key->type == 0 && cfd_plain_order(type, index->rd_opfamily[number]))
		key->number = type;
	else if (key->type == 0)
		order->waits = true;
	/* A number takes two columns: whether it is NULL, and its value. */
	if (OidIsValid(key->number))
		cfd_row_order_add_column(order, number)->descending = nulls_first;
	column = cfd_row_order_add_column(order, number);
	column->type = key->type;
	/* Ranks already follow the index's order. */
	column->descending = key->descending && (key->type != 0 || OidIsValid(key->number));
	column->nulls_first = nulls_first;
}

/* Creates PostgreSQL's sort for a plain key. */
static CfdPlainSort *
plain_sort(const Key *key, Relation index, int number)
{
	Oid			type = index->rd_opcintype[number];
	int16		strategy = key->descending ? BTGreaterStrategyNumber : BTLessStrategyNumber;
	Oid			operator = get_opfamily_member(index->rd_opfamily[number], type, type, strategy);

	/*
	 * For other types the operators' type is right, and the index may store a
	 * different one.
	 */
	if (IsPolymorphicType(type))
		type = TupleDescAttr(RelationGetDescr(index), number)->atttypid;
	return cfd_plain_sort_create(type, operator, index->rd_indcollation[number],
								 (index->rd_indoption[number] & INDOPTION_NULLS_FIRST) != 0);
}

static bool
any_protected(Relation index, int keys)
{
	for (int i = 0; i < keys; i++)
	{
		if (cfd_type_code(index->rd_opcintype[i]) != 0)
			return true;
	}
	return false;
}

CfdRowOrder *
cfd_row_order_create(MemoryContext context, Relation index)
{
	int			keys = IndexRelationGetNumberOfKeyAttributes(index);
	MemoryContext before;
	CfdRowOrder *order;

	if (!any_protected(index, keys))
		return NULL;
	before = MemoryContextSwitchTo(context);
	order = palloc0(sizeof(CfdRowOrder));
	order->context = context;
	order->key_count = keys;
	order->keys = palloc0(sizeof(Key) * keys);
	for (int i = 0; i < keys; i++)
		describe_key(order, index, i);
	if (order->set.columns <= CFD_RANK_COLUMNS_MAX)
	{
		for (int i = 0; i < keys; i++)
		{
			if (order->keys[i].type == 0 && !OidIsValid(order->keys[i].number))
				order->keys[i].sort = plain_sort(&order->keys[i], index, i);
		}
		order->words = palloc(sizeof(uint64) * SEND_ROWS * order->set.columns);
		order->at_end.func = cfd_row_order_forget;
		order->at_end.arg = order;
		MemoryContextRegisterResetCallback(context, &order->at_end);
	}
	MemoryContextSwitchTo(before);
	return order->set.columns <= CFD_RANK_COLUMNS_MAX ? order : NULL;
}

Size
cfd_row_order_row_size(const CfdRowOrder *order)
{
	/* The row's rank, and per key a map entry and a rank of the first columns. */
	return sizeof(uint32) + (Size) order->key_count * 3 * sizeof(uint32);
}

/* ---------- rows ---------- */

static void
cfd_row_order_send_words(CfdRowOrder *order)
{
	if (order->word_rows > 0)
		cfd_set_add(&order->set, order->words, order->word_rows, SEND_ROWS);
	order->word_rows = 0;
}

/* Stores the keys of a row in the form in which they are sent. */
static void
put_words(CfdRowOrder *order, const Datum *values, const bool *nulls)
{
	uint64	   *word = order->words + order->word_rows;

	for (int i = 0; i < order->key_count; i++)
	{
		const Key  *key = &order->keys[i];

		if (OidIsValid(key->number))
		{
			*word = nulls[i];
			word += SEND_ROWS;
			*word = nulls[i] ? 0 : cfd_plain_number(values[i], key->number);
		}
		else if (key->type == 0)
			*word = key->ranks[order->row];
		else
			*word = nulls[i] ? 0 : DatumGetUInt64(values[i]);
		word += SEND_ROWS;
	}
	order->row++;
	if (++order->word_rows == SEND_ROWS)
		cfd_row_order_send_words(order);
}

/* Collects what must be known about all rows before any can be ranked. */
static void
cfd_row_order_look_at(CfdRowOrder *order, const Datum *values, const bool *nulls)
{
	for (int i = 0; i < order->key_count; i++)
	{
		Key		   *key = &order->keys[i];

		if (key->sort != NULL)
			cfd_plain_sort_add(key->sort, values[i], nulls[i]);
		if (key->type == 0 || nulls[i])
			continue;
		if (unlikely(DatumGetUInt64(values[i]) == 0))
			cfd_invalid_fid();
		cfd_map_range_add(&key->range, DatumGetUInt64(values[i]));
	}
}

void
cfd_row_order_add(CfdRowOrder *order, const Datum *values, const bool *nulls)
{
	cfd_row_order_look_at(order, values, nulls);
	if (!order->waits)
		put_words(order, values, nulls);
}

bool
cfd_row_order_waits(CfdRowOrder *order)
{
	MemoryContext before = MemoryContextSwitchTo(order->context);

	for (int i = 0; i < order->key_count && order->waits; i++)
	{
		Key		   *key = &order->keys[i];

		if (key->sort == NULL)
			continue;
		key->ranks = cfd_plain_sort_ranks(key->sort);
		cfd_plain_sort_end(key->sort);
		key->sort = NULL;
	}
	MemoryContextSwitchTo(before);
	return order->waits;
}

void
cfd_row_order_add_again(CfdRowOrder *order, const Datum *values, const bool *nulls)
{
	put_words(order, values, nulls);
}

void
cfd_row_order_drop(CfdRowOrder *order)
{
	for (int i = 0; i < order->key_count; i++)
	{
		if (order->keys[i].sort != NULL)
			cfd_plain_sort_end(order->keys[i].sort);
	}
	MemoryContextDelete(order->context);
}

/* ---------- ranks ---------- */

/*
 * Computes, for each rank, the rank of the columns up to a key. It increases
 * wherever one of these columns decides.
 */
static const uint32 *
ranks_through(const CfdRowOrder *order, int key, const uint8 *steps, uint32 distinct)
{
	uint32	   *ranks = MemoryContextAllocHuge(order->context, sizeof(uint32) * Max(distinct, 1));
	uint32		rank = 0;

	for (uint32 i = 0; i < distinct; i++)
	{
		if (unlikely(steps[i] >= order->set.columns))
			cfd_violation("impossible column");
		rank += i > 0 && order->key_of[steps[i]] <= key;
		ranks[i] = rank;
	}
	return ranks;
}

const uint32 *
cfd_row_order_rank(CfdRowOrder *order, uint32 *distinct)
{
	const uint32 *before = NULL;
	const uint32 *ranks;
	const uint8 *steps;

	cfd_row_order_send_words(order);
	ranks = cfd_set_order(&order->set, &steps, distinct);
	for (int i = 0; i < order->key_count; i++)
	{
		Key		   *key = &order->keys[i];
		bool		last = i + 1 == order->key_count;
		const uint32 *through = NULL;

		if (key->ranks != NULL)
			pfree(key->ranks);
		if (!last && (key->type != 0 || order->keys[i + 1].type != 0))
			through = ranks_through(order, i, steps, *distinct);
		key->before = before;
		key->through = through;
		if (key->type != 0)
			cfd_map_init(&key->map, order->context, &key->range);
		before = through;
	}
	return ranks;
}

void
cfd_row_order_place(CfdRowOrder *order, const Datum *values, const bool *nulls, uint32 rank)
{
	for (int i = 0; i < order->key_count; i++)
	{
		if (order->keys[i].type != 0 && !nulls[i])
			cfd_map_put(&order->keys[i].map, DatumGetUInt64(values[i]), rank);
	}
}

void
cfd_row_order_fetch(const CfdRowOrder *order, const Datum *values)
{
	for (int i = 0; i < order->key_count; i++)
	{
		if (order->keys[i].type != 0)
			cfd_map_fetch(&order->keys[i].map, DatumGetUInt64(values[i]));
	}
}

/* ---------- comparisons ---------- */

static bool
has_known(const CfdSource *known, CfdFid fid)
{
	const CfdRowOrder *order = (const CfdRowOrder *) known;

	for (int i = 0; i < order->key_count; i++)
	{
		if (order->keys[i].type != 0 && cfd_map_find(&order->keys[i].map, fid) != CFD_RANK_BEYOND)
			return true;
	}
	return false;
}

/*
 * Compares two values of a key column, if both are known and their preceding
 * columns are equal.
 */
static bool
compare_in(const Key *key, CfdFid a, CfdFid b, int *result)
{
	uint32		x = cfd_map_find(&key->map, a);
	uint32		y = cfd_map_find(&key->map, b);

	if (x == CFD_RANK_BEYOND || y == CFD_RANK_BEYOND)
		return false;
	if (key->before != NULL && key->before[x] != key->before[y])
		return false;
	if (key->through != NULL)
	{
		x = key->through[x];
		y = key->through[y];
	}
	*result = key->descending ? (y > x) - (y < x) : (x > y) - (x < y);
	return true;
}

static bool
cfd_row_order_find(CfdSource *known, CfdFid a, CfdFid b, int *result)
{
	const CfdRowOrder *order = (const CfdRowOrder *) known;

	for (int i = 0; i < order->key_count; i++)
	{
		if (order->keys[i].type != 0 && compare_in(&order->keys[i], a, b, result))
			return true;
	}
	return false;
}

void
cfd_row_order_tell(CfdRowOrder *order)
{
	cfd_known_begin(&cfd_known[CFD_SCOPE_BUILD]);
	order->known = (CfdSource) {.kind = CFD_FACT_ORDER,.order = cfd_row_order_find,.has = has_known};
	cfd_known_add_source(&cfd_known[CFD_SCOPE_BUILD], &order->known);
}
