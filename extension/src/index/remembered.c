/*
 * remembered.c
 *	  Descents of a B-tree by pages that the keeper remembers: see remembered.h.
 *
 * The backend numbers the pages, and keeps a hash of the bytes with which each was sent. All
 * entries are dropped together: when the numbers are used up, when the keeper says that it has
 * dropped them, or when the channel ends.
 *
 * Behind plain columns a page is sent once for each run of keys that are equal in these columns:
 * keys before the run are sent as below all values, keys after it as above. The run is a part of
 * the page's name.
 *
 * Invariant: as in remembered.h. A page counts as sent only after the keeper has answered.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "index/remembered.h"
#include "session/channel.h"
#include "utils/hsearch.h"
#include "value/types.h"

/* After the keeper has declined, this number of descents use another method. */
#define DECLINED 256
#define RUN_ALL PG_UINT32_MAX

bool		cfd_enable_page_memory = true;

typedef struct PageKey
{
	Oid			index;
	BlockNumber block;
	uint32		less;			/* the run of keys that is sent as it is; all: 0 and RUN_ALL */
	uint32		up_to;
} PageKey;

typedef struct Remembered
{
	PageKey		key;
	uint32		number;
	bool		sent;
	uint64		hash;
} Remembered;

static HTAB *remembered = NULL;
static uint32 next_number = 0;
/* Generation of the keeper's memory that the table is about. */
static uint32 generation = 0;
static uint32 forgotten = 0;
static int	declined = 0;

static void
forget_pages(void)
{
	if (remembered != NULL)
		hash_destroy(remembered);
	remembered = NULL;
	next_number = 0;
}

/* Returns the entry of a page and of a run of its keys, or NULL. */
static Remembered *
remembered_entry(Relation index, const CfdKeys *page, int less, int up_to, HASHACTION action)
{
	bool		all = less == 0 && up_to == page->count;
	PageKey		key = {.index = RelationGetRelid(index),.block = page->block,.less = less,.up_to = all ? RUN_ALL : up_to};
	Remembered *entry;
	bool		found;

	if (generation != cfd_channel.generation || next_number == CFD_SEARCH_PAGES_MAX)
		forget_pages();
	if (generation != cfd_channel.generation)
		forgotten = 0;
	generation = cfd_channel.generation;
	if (remembered == NULL)
	{
		HASHCTL		control = {.keysize = sizeof(PageKey),.entrysize = sizeof(Remembered)};

		if (action == HASH_FIND)
			return NULL;
		remembered = hash_create("Confide pages", 256, &control, HASH_ELEM | HASH_BLOBS);
	}
	entry = hash_search(remembered, &key, action, &found);
	if (entry != NULL && !found)
	{
		entry->number = next_number++;
		entry->sent = false;
	}
	return entry;
}

/* A hash of the page's bytes. */
static uint64
hash_of(const CfdKeys *page)
{
	const uint64 *words = (const uint64 *) page->image.data;
	uint64		lanes[4] = {1, 2, 3, 4};
	uint64		hash = 0;

	StaticAssertStmt(BLCKSZ % sizeof(lanes) == 0, "pages are hashed in four lanes");
	for (int i = 0; i < (int) (BLCKSZ / sizeof(uint64)); i += 4)
	{
		for (int lane = 0; lane < 4; lane++)
		{
			uint64		mixed = (lanes[lane] ^ words[i + lane]) * UINT64CONST(0x9E3779B97F4A7C15);

			lanes[lane] = mixed ^ (mixed >> 29);
		}
	}
	for (int lane = 0; lane < 4; lane++)
	{
		hash = (hash ^ lanes[lane]) * UINT64CONST(0xBF58476D1CE4E5B9);
		hash ^= hash >> 31;
	}
	return hash;
}

/* Whether the keeper has the page with these bytes. */
static bool
cfd_page_remembered(Relation index, const CfdKeys *page)
{
	const Remembered *entry = remembered_entry(index, page, 0, page->count, HASH_FIND);

	return entry != NULL && entry->sent && entry->hash == hash_of(page);
}

bool
cfd_pages_guess_other(const CfdPages *pages, Relation index)
{
	bool		other = false;

	for (int i = 1; i < pages->pages; i++)
	{
		if (!cfd_page_remembered(index, &pages->page[i]))
			other |= cfd_pages_guess_pays(index, &pages->page[i]);
	}
	return other;
}

void
cfd_descent_begin(CfdDescent *descent, int plain, int values)
{
	descent->plain = plain;
	descent->values = values;
	descent->above = CFD_SEARCH_NO_PAGE;
	descent->block = P_NONE;
	descent->child = 0;
	descent->levels = 0;
}

bool
cfd_descent_pays(void)
{
	if (!cfd_enable_page_memory)
		return false;
	if (declined == 0)
		return true;
	declined--;
	return false;
}

void
cfd_descent_step(CfdDescent *descent, const CfdKeys *page, uint32 less, uint32 up_to)
{
	descent->child = less;
	if (less != up_to || descent->block != page->block)
		descent->above = CFD_SEARCH_NO_PAGE;
}

/* Number of protected columns that follow the plain ones. */
static int
protected_columns(Relation index, int plain)
{
	int			all = Min(IndexRelationGetNumberOfKeyAttributes(index) - plain, CFD_SEARCH_VALUES_MAX);
	int			columns = 0;

	while (columns < all && cfd_type_code(index->rd_opcintype[plain + columns]) != 0)
		columns++;
	return columns;
}

static void
put_keys(StringInfo body, Relation index, const CfdKeys *page, const CfdDescent *descent, int columns)
{
	for (int column = 1; column <= columns; column++)
	{
		for (int i = 0; i < page->count; i++)
		{
			CfdFid		fid = i < descent->less ? CFD_SEARCH_BELOW : i >= descent->up_to ? CFD_SEARCH_ABOVE :
			cfd_key_fid(index, cfd_page_key(page, i), descent->plain + column);

			appendBinaryStringInfo(body, (const char *) &fid, sizeof(fid));
		}
	}
}

/* Stores an answer; returns false if it is empty. */
static bool
take_answer(CfdDescent *descent, const CfdReadDescendAnswer *read, int keys, uint32 number)
{
	bool		lost = read->head.forgotten != forgotten;

	forgotten = read->head.forgotten;
	if (lost)
		forget_pages();
	descent->levels = 0;
	if (read->head.levels == 0)
		return false;
	if (read->head.levels > CFD_SEARCH_LEVELS_MAX ||
		read->places_count != (uint64) read->head.levels * descent->values || read->pages[0] != number)
		cfd_violation("places on other pages");
	for (int i = 0; i < descent->values; i++)
	{
		if (read->places[i].less != CFD_SEARCH_UNKNOWN &&
			(read->places[i].less > read->places[i].up_to || read->places[i].up_to > (uint32) keys))
			cfd_violation("impossible place of a value");
	}
	descent->levels = read->head.levels;
	memcpy(descent->pages, read->pages, sizeof(uint32) * descent->levels);
	memcpy(descent->places, read->places, sizeof(CfdWirePlace) * read->places_count);
	return true;
}

/* Sends a request about a page, with or without its keys. */
static bool
remembered_ask(CfdDescent *descent, Relation index, const CfdKeys *page, uint32 number, bool with_keys)
{
	CfdWireDescend fixed = {.values = descent->values,.page = number,.above = descent->above,.child = descent->child};
	CfdReadDescendAnswer read;
	StringInfoData body;
	const char *answer;
	uint32		length;

	initStringInfo(&body);
	appendBinaryStringInfo(&body, (const char *) descent->sought, sizeof(CfdWireSought) * descent->values);
	if (with_keys)
	{
		fixed.columns = protected_columns(index, descent->plain);
		fixed.keys = page->count;
		put_keys(&body, index, page, descent, fixed.columns);
	}
	answer = cfd_call(CFD_KIND_DESCEND, &fixed, sizeof(fixed), body.data, body.len, &length);
	pfree(body.data);
	CFD_DECODE(descend_answer, answer, length, &read);
	return take_answer(descent, &read, page->count, number);
}

/* Returns the places on a page from the last answer, or NULL. */
static const CfdWirePlace *
answered(const CfdDescent *descent, uint32 number, int keys)
{
	for (int level = 0; level < descent->levels; level++)
	{
		const CfdWirePlace *places = &descent->places[level * descent->values];

		if (descent->pages[level] != number)
			continue;
		/* If the page has changed, the place may exceed its keys; then it is not used. */
		for (int i = 0; i < descent->values; i++)
		{
			if (places[i].less > places[i].up_to || places[i].up_to > (uint32) keys)
				return NULL;
		}
		return places;
	}
	return NULL;
}

const CfdWirePlace *
cfd_descent_places(CfdDescent *descent, Relation index, const CfdKeys *page)
{
	uint64		hash = hash_of(page);
	Remembered *entry;
	uint32		number;
	const CfdWirePlace *places = NULL;
	bool		same;

	cfd_begin();
	entry = remembered_entry(index, page, descent->less, descent->up_to, HASH_ENTER);
	number = entry->number;
	same = entry->sent && entry->hash == hash;
	if (same)
		places = answered(descent, number, page->count);
	if (places == NULL && same && remembered_ask(descent, index, page, number, false))
		places = descent->places;
	if (places == NULL)
	{
		/* Numbers of pages that the keeper has dropped meanwhile are not reused. */
		entry = remembered_entry(index, page, descent->less, descent->up_to, HASH_ENTER);
		entry->sent = false;
		number = entry->number;
		if (!remembered_ask(descent, index, page, number, true))
		{
			declined = DECLINED;
			return NULL;
		}
		places = descent->places;
		entry = remembered_entry(index, page, descent->less, descent->up_to, HASH_ENTER);
		entry->sent = entry->number == number;
		entry->hash = hash;
	}
	descent->above = number;
	descent->block = page->block;
	return places;
}
