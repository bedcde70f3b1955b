/*
 * insertion.c
 *	  Promotes a row together with the searches for its insertion into indexes: see insertion.h.
 *
 * This is done for each index whose first columns are protected, possibly after plain ones. It
 * reads the pages that an insertion would read first, using those of the last descent (pages.h).
 * The keeper promotes the values and then places the new identifiers among the keys that equal the
 * row in the plain columns. Its answers become known facts, which the insertion uses if the pages
 * have not changed.
 *
 * Invariants: as in search.h; no lock is held during a request to the keeper.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_am.h"
#include "compat/compat.h"
#include "index/insertion.h"
#include "index/pages.h"
#include "index/search.h"
#include "known/known.h"
#include "program/registry.h"
#include "session/channel.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "value/types.h"

#define INDEXES_MAX 8
#define COLUMNS_MAX 8

/* What to search for in an index. */
typedef struct Sought
{
	int			before;			/* plain columns before the protected ones */
	int			columns;
	int			count;			/* keys */
	CfdFid	   *keys;			/* column by column */
	int			number[COLUMNS_MAX];	/* attribute - 1 */
	uint16		program[COLUMNS_MAX];
} Sought;

/* Adds a column of the index, if it is protected and ascending. */
static bool
insertion_column(Relation index, int column, TupleTableSlot *slot, Sought *sought)
{
	Oid			own = index->rd_opcintype[column];
	int			number = index->rd_index->indkey.values[column] - 1;
	const CfdFunction *function;

	if ((index->rd_indoption[column] & INDOPTION_DESC) != 0 || number < 0 || slot->tts_isnull[number] ||
		sought->columns == COLUMNS_MAX)
		return false;
	function = cfd_function(get_opfamily_proc(index->rd_opfamily[column], own, own, BTORDER_PROC));
	if (function == NULL || function->call != CFD_CALL_ORDER)
		return false;
	sought->number[sought->columns] = number;
	sought->program[sought->columns++] = function->signature;
	return true;
}

/*
 * Whether inserting the slot's row searches an index by protected keys in ascending order, possibly
 * after plain ones. Keys after another plain column are searched when the row is inserted.
 */
static bool
take_columns(Relation index, TupleTableSlot *slot, Sought *sought)
{
	int			keys = IndexRelationGetNumberOfKeyAttributes(index);
	int			column;

	if (index->rd_rel->relam != BTREE_AM_OID || RelationGetIndexExpressions(index) != NIL ||
		RelationGetIndexPredicate(index) != NIL || !CheckRelationLockedByMe(index, AccessShareLock, true))
		return false;
	for (column = 0; column < keys && cfd_type_code(index->rd_opcintype[column]) == 0; column++)
	{
		int			number = index->rd_index->indkey.values[column] - 1;

		if (number < 0 || slot->tts_isnull[number])
			return false;
	}
	sought->before = column;
	sought->columns = 0;
	for (; column < keys && cfd_type_code(index->rd_opcintype[column]) != 0; column++)
	{
		if (!insertion_column(index, column, slot, sought))
			return false;
	}
	return sought->columns > 0;
}

/*
 * Reads the pages; returns false if there is nothing to ask. The keys live as long as the known
 * facts.
 */
static bool
read_keys(Relation index, TupleTableSlot *slot, Sought *sought, MemoryContext context)
{
	static CfdPages pages;
	Buffer		root = CFD_BT_ROOT(index);
	int			first = 0;
	int			end;
	CfdFid	   *key;

	if (!BufferIsValid(root))
		return false;
	cfd_pages_read(&pages, index, root, true);
	if (pages.page[0].ignore)
		return false;
	end = pages.keys;
	for (int column = 1; column <= sought->before; column++)
		cfd_pages_place_plain(&pages, index, column,
							  slot->tts_values[index->rd_index->indkey.values[column - 1] - 1], &first, &end);
	if (first == end)
		return false;
	sought->count = end - first;
	sought->keys = key = MemoryContextAlloc(context, sizeof(CfdFid) * sought->count * sought->columns);
	for (int column = 1; column <= sought->columns; column++)
	{
		for (int i = first; i < end; i++)
			*key++ = cfd_key_fid(index, pages.key[i], sought->before + column);
	}
	return true;
}

/* Determines what to search for in the table's indexes; returns the number of these. */
static int
find_searches(Relation table, TupleTableSlot *slot, Sought *searches, MemoryContext context)
{
	List	   *indexes = RelationGetIndexList(table);
	int			count = 0;
	ListCell   *cell;

	slot_getallattrs(slot);
	foreach(cell, indexes)
	{
		Relation	index = RelationIdGetRelation(lfirst_oid(cell));

		if (!RelationIsValid(index))
			continue;
		if (count < INDEXES_MAX && take_columns(index, slot, &searches[count]) &&
			read_keys(index, slot, &searches[count], context))
			count++;
		RelationClose(index);
	}
	list_free(indexes);
	return count;
}

/* Returns the index of an attribute among the promoted values, or -1. */
static int
move_of(const int *numbers, int count, int number)
{
	for (int i = 0; i < count; i++)
	{
		if (numbers[i] == number)
			return i;
	}
	return -1;
}

static void
put_searches(StringInfo body, const Sought *searches, int count, TupleTableSlot *slot, const int *numbers, int moves)
{
	for (int i = 0; i < count; i++)
	{
		CfdWireAmong among = {.values = searches[i].columns,.keys = searches[i].count};

		appendBinaryStringInfo(body, (char *) &among, sizeof(among));
	}
	for (int i = 0; i < count; i++)
	{
		for (int column = 0; column < searches[i].columns; column++)
		{
			int			number = searches[i].number[column];
			int			move = move_of(numbers, moves, number);
			CfdWireSought sought = {.program = searches[i].program[column]};

			sought.flags = move < 0 ? 0 : CFD_SEARCH_MOVED;
			sought.fid = move < 0 ? DatumGetUInt64(slot->tts_values[number]) : (CfdFid) move;
			appendBinaryStringInfo(body, (char *) &sought, sizeof(sought));
		}
	}
	for (int i = 0; i < count; i++)
		appendBinaryStringInfo(body, (char *) searches[i].keys,
							   sizeof(CfdFid) * searches[i].count * searches[i].columns);
}

/*
 * Stores the row's places in an index, for each column among the keys that equal the previous ones.
 */
static void
remember_places(CfdScope *scope, const Sought *sought, const CfdFid *values, const CfdWirePlace *places)
{
	uint32		begin = 0;
	uint32		end = sought->count;

	for (int i = 0; i < sought->columns; i++)
	{
		if (places[i].less == CFD_SEARCH_UNKNOWN)
			return;
		if (places[i].less < begin || places[i].less > places[i].up_to || places[i].up_to > end)
			cfd_violation("impossible place of a value");
		cfd_known_put_place(scope, sought->program[i], values[i], sought->keys + (Size) i * sought->count + begin,
							end - begin, places[i].less - begin, places[i].up_to - begin);
		begin = places[i].less;
		end = places[i].up_to;
	}
}

bool
cfd_insertion_promote(Relation table, TupleTableSlot *slot, CfdPromotion *items, const int *numbers, int count)
{
	CfdScope   *scope = &cfd_known[CFD_SCOPE_INSERTION];
	Sought		searches[INDEXES_MAX];
	StringInfoData body;
	const CfdWirePlace *places;
	int			found;
	int			values = 0;

	if (!cfd_enable_index_search || !table->rd_rel->relhasindex)
		return false;
	cfd_known_begin(scope);
	if (scope->copies == NULL)
		scope->copies = AllocSetContextCreate(TopMemoryContext, "Confide keys", ALLOCSET_DEFAULT_SIZES);
	found = find_searches(table, slot, searches, scope->copies);
	if (found == 0)
		return false;
	for (int i = 0; i < found; i++)
		values += searches[i].columns;
	initStringInfo(&body);
	put_searches(&body, searches, found, slot, numbers, count);
	places = cfd_promote_searching(table, items, count, found, values, body.data, body.len);
	pfree(body.data);
	for (int i = 0; places != NULL && i < found; i++)
	{
		CfdFid		fids[COLUMNS_MAX];

		for (int column = 0; column < searches[i].columns; column++)
		{
			int			move = move_of(numbers, count, searches[i].number[column]);

			fids[column] = move < 0 ? DatumGetUInt64(slot->tts_values[searches[i].number[column]]) : items[move].fid;
		}
		remember_places(scope, &searches[i], fids, places);
		places += searches[i].columns;
	}
	return true;
}
