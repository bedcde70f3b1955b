/*
 * pages.c
 *	  Copies of B-tree pages: see pages.h.
 *
 * On each level, the guess is the page that the last descent in the index reached. A score tells
 * whether guessing pays: a guess costs reading a page and sending some hundred identifiers, and
 * saves a round trip.
 *
 * After the pages below were read, the pages above them are compared with their copies, to check
 * that they have not changed: PostgreSQL changes a page before one of its children receives keys
 * beyond its bounds.
 *
 * Invariant: as in pages.h. Only one page is locked at a time.
 */
#include "postgres.h"

#include "index/pages.h"
#include "utils/rel.h"

/* Number of levels of an index for which the last page is remembered. */
#define LEVELS 4
#define PATHS 256
/* If an inner page has at most so many inner children, all of them are read. */
#define FEW 4
#define SCORE_HIT 2
#define SCORE_MAX 4
/* A leaf with less room than for so many entries may be full. */
#define ROOM_ENTRIES 2

/* The pages that the last descent in an index reached. */
typedef struct Path
{
	Oid			index;
	BlockNumber block[LEVELS];
	int8		score[LEVELS];	/* positive: the next descent will probably reach the same page */
	BlockNumber guess;			/* a leaf that was read ahead, or P_NONE */
	int8		right;			/* positive: such guesses were right */
} Path;

static Path paths[PATHS];

static Path *
path_of(Relation index)
{
	Path	   *path = &paths[RelationGetRelid(index) % PATHS];

	if (path->index != RelationGetRelid(index))
	{
		memset(path, 0, sizeof(Path));
		path->index = RelationGetRelid(index);
	}
	return path;
}

void
cfd_pages_reached(Relation index, const CfdKeys *page)
{
	Path	   *path = path_of(index);
	int8	   *score;

	if (page->level >= LEVELS)
		return;
	if (page->level == 0 && path->guess != P_NONE)
	{
		path->right += path->guess == page->block ? 1 : -1;
		path->right = Max(Min(path->right, SCORE_MAX), -SCORE_MAX);
		path->guess = P_NONE;
	}
	score = &path->score[page->level];
	if (path->block[page->level] == page->block)
		*score = Min(*score + SCORE_HIT, SCORE_MAX);
	else
		*score = Max(*score - 1, 0);
	path->block[page->level] = page->block;
}

bool
cfd_pages_guess_pays(Relation index, const CfdKeys *page)
{
	Path	   *path = path_of(index);

	if (page->level == 0)
		path->guess = page->block;
	return path->right >= 0;
}

void
cfd_page_copy(CfdKeys *page, Relation index, Buffer buffer)
{
	BTPageOpaque opaque;
	int			last;

	page->block = BufferGetBlockNumber(buffer);
	memcpy(page->image.data, BufferGetPage(buffer), BLCKSZ);
	_bt_relbuf(index, buffer);
	opaque = BTPageGetOpaque((Page) page->image.data);
	last = PageGetMaxOffsetNumber((Page) page->image.data);
	page->level = P_ISLEAF(opaque) ? 0 : Max(opaque->btpo_level, 1);
	page->ignore = P_IGNORE(opaque);
	page->next = opaque->btpo_next;
	/* The first child of an inner page has no key: it is below all keys. */
	page->first = P_FIRSTDATAKEY(opaque) + (page->level == 0 ? 0 : 1);
	page->items = Min(Max(last - page->first + 1, 0), CFD_PAGE_KEYS_MAX - 1);
	page->count = page->items + (P_RIGHTMOST(opaque) ? 0 : 1);
	page->above = -1;
}

/* Reads children of a page: all of them if they are few inner pages, otherwise the guessed one. */
static void
read_children(CfdPages *pages, Relation index, int above)
{
	const CfdKeys *page = &pages->page[above];
	const Path *path = path_of(index);
	uint32		level = page->level - 1;
	bool		all = level > 0 && page->items < FEW;

	if (!all && (level >= LEVELS || path->score[level] <= 0))
		return;
	for (int child = 0; child <= page->items && pages->pages < CFD_PAGES_MAX; child++)
	{
		CfdKeys    *to = &pages->page[pages->pages];
		BlockNumber block = cfd_page_child(page, child);

		if (!all && block != path->block[level])
			continue;
		cfd_page_copy(to, index, _bt_getbuf(index, block, BT_READ));
		if (to->ignore || to->level != level || pages->keys + to->count > CFD_PAGES_KEYS)
			continue;
		to->above = above;
		to->child = child;
		pages->keys += to->count;
		pages->pages++;
	}
}

/* Whether the upper pages are still the same as their copies. */
static bool
unchanged(const CfdPages *pages, Relation index)
{
	for (int i = 1, last = -1; i < pages->pages; i++)
	{
		const CfdKeys *above = &pages->page[pages->page[i].above];
		Buffer		buffer;
		bool		same;

		if (pages->page[i].above == last)
			continue;
		last = pages->page[i].above;
		buffer = _bt_getbuf(index, above->block, BT_READ);
		same = memcmp(BufferGetPage(buffer), above->image.data, BLCKSZ) == 0;
		_bt_relbuf(index, buffer);
		if (!same)
			return false;
	}
	return true;
}

/* Returns the next child of a page, from this number on, that was read; NULL if there is none. */
static CfdKeys *
child_read(CfdPages *pages, const CfdKeys *page, int from)
{
	for (int i = 1; i < pages->pages; i++)
	{
		CfdKeys    *child = &pages->page[i];

		if (&pages->page[child->above] == page && child->child >= from)
			return child;
	}
	return NULL;
}

/* Adds the keys of a page, with those of its children in between. */
static void
add_keys(CfdPages *pages, CfdKeys *page)
{
	CfdKeys    *child = child_read(pages, page, 0);

	for (int i = 0; i <= page->count; i++)
	{
		if (child != NULL && child->child == i)
		{
			add_keys(pages, child);
			child = child_read(pages, page, i + 1);
		}
		if (i < page->count)
		{
			page->at[i] = pages->keys;
			pages->key[pages->keys++] = cfd_page_key(page, i);
		}
	}
}

void
cfd_pages_read(CfdPages *pages, Relation index, Buffer buffer, bool below)
{
	cfd_page_copy(&pages->page[0], index, buffer);
	pages->pages = 1;
	pages->keys = pages->page[0].count;
	for (int i = 0; below && !pages->page[0].ignore && i < pages->pages; i++)
	{
		if (pages->page[i].level > 0)
			read_children(pages, index, i);
	}
	if (!unchanged(pages, index))
		pages->pages = 1;
	pages->keys = 0;
	add_keys(pages, &pages->page[0]);
}

void
cfd_pages_keep_first(CfdPages *pages)
{
	if (pages->pages == 1)
		return;
	pages->pages = 1;
	pages->keys = 0;
	add_keys(pages, &pages->page[0]);
}

CfdKeys *
cfd_pages_find(CfdPages *pages, BlockNumber block)
{
	for (int i = 0; i < pages->pages; i++)
	{
		if (pages->page[i].block == block)
			return &pages->page[i];
	}
	return NULL;
}

/* Compares a key with a plain value, in the index's order. */
static int
compare_plain(Relation index, IndexTuple tuple, AttrNumber column, Datum value)
{
	FmgrInfo   *order = index_getprocinfo(index, column, BTORDER_PROC);
	Datum		key;
	bool		below;
	int			result;

	if (!cfd_key_column(index, tuple, column, &key, &below))
		return below ? -1 : 1;
	result = DatumGetInt32(FunctionCall2Coll(order, index->rd_indcollation[column - 1], key, value));
	return (index->rd_indoption[column - 1] & INDOPTION_DESC) != 0 ? -result : result;
}

void
cfd_pages_place_plain(const CfdPages *pages, Relation index, AttrNumber column, Datum value, int *less, int *up_to)
{
	int			low = *less;
	int			end = *up_to;

	for (int limit = 0; limit <= 1; limit++)
	{
		int			high = end;

		while (low < high)
		{
			int			middle = low + (high - low) / 2;

			if (compare_plain(index, pages->key[middle], column, value) < limit)
				low = middle + 1;
			else
				high = middle;
		}
		if (limit == 0)
			*less = low;
		*up_to = low;
	}
}

int
cfd_page_among_equals(const CfdKeys *page, Relation index, int less, int up_to, int columns, ItemPointer row)
{
	while (less < up_to)
	{
		int			middle = less + (up_to - less) / 2;
		IndexTuple	tuple = cfd_page_key(page, middle);
		ItemPointer key = BTreeTupleGetHeapTID(tuple);

		if (key == NULL ? BTreeTupleGetNAtts(tuple, index) == columns : row != NULL && ItemPointerCompare(row, key) > 0)
			less = middle + 1;
		else
			up_to = middle;
	}
	return less;
}

int
cfd_page_greater_seen(const CfdKeys *page, int less, int up_to)
{
	int			low = 0;
	int			high = page->items;
	int			greater = page->items;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (middle < less)
			low = middle + 1;
		else
			high = middle;
		if (middle >= up_to)
			greater = middle;
	}
	return greater;
}

bool
cfd_page_may_be_full(const CfdKeys *page)
{
	Page		image = (Page) page->image.data;
	Size		used = PageGetPageSize(image) - PageGetExactFreeSpace(image);

	return page->count == 0 || PageGetFreeSpace(image) < ROOM_ENTRIES * used / page->count;
}
