/*
 * arms.c
 *	  Several descents of one B-tree, side by side; see arms.h.
 *
 * The pages of a level are read one after the other. One message then asks
 * about all of them, each page once for all arms that are on it. No lock is
 * held while the keeper is asked. If a page changes meanwhile, nothing is known
 * of its new keys, and PostgreSQL's comparisons ask.
 *
 * Invariant: as in ahead.h.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "compat/compat.h"
#include "index/arms.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "program/registry.h"
#include "session/channel.h"
#include "session/pins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Maximum number of pages in one descent: levels plus steps to the right. */
#define STEPS_MAX 32
/* A message that has this many keys gets no further question. */
#define MESSAGE_KEYS 65536

/* A question about a page, and its answer. */
typedef struct CfdQuestion
{
	BlockNumber block;
	bool		leaf;
	BlockNumber next;			/* right sibling, or P_NONE */
	int			items;			/* number of keys without the high key */
	int			count;
	const CfdFid *keys;			/* column by column, in page order, high key last */
	const BlockNumber *children;	/* internal page: downlinks before each key, and the last one */
	const CfdArmValue *lead;	/* equality values shared by all its arms */
	int			values;
	CfdArmValue value[CFD_SEARCH_VALUES_MAX];
	int			leads;
	CfdPlace	place[CFD_SEARCH_VALUES_MAX];	/* of the equality values, then of these */
	bool		answered;
	struct CfdQuestion *older;
} CfdQuestion;

/* Groups of the plans that are running. */
static CfdArms *groups = NULL;

/* ---------- groups ---------- */

CfdArms *
cfd_arms_make(MemoryContext context, int room)
{
	CfdArms    *made = MemoryContextAllocZero(context, sizeof(CfdArms));

	made->context = context;
	made->arms = MemoryContextAllocZero(context, sizeof(CfdArm) * room);
	made->room = room;
	made->columns = 1;
	made->asking = AllocSetContextCreate(context, "Confide searches", ALLOCSET_SMALL_SIZES);
	return made;
}

static void
forget_arms(void *arg)
{
	for (CfdArms **at = &groups; *at != NULL; at = &(*at)->next)
	{
		if (*at == arg)
		{
			*at = (*at)->next;
			return;
		}
	}
}

void
cfd_arms_add(CfdArms *group)
{
	group->at_end.func = forget_arms;
	group->at_end.arg = group;
	MemoryContextRegisterResetCallback(group->context, &group->at_end);
	group->next = groups;
	groups = group;
}

void
cfd_arms_clear(CfdArms *group)
{
	MemoryContextReset(group->asking);
	group->asked = false;
	group->found = 0;
	memset(group->arms, 0, sizeof(CfdArm) * group->count);
	group->count = 0;
}

CfdArms *
cfd_arms_of(IndexScanDesc scan)
{
	for (CfdArms *group = groups; group != NULL; group = group->next)
	{
		if (group->scan == scan || (group->where != NULL && *group->where == scan))
			return group;
		for (int i = 0; i < group->count; i++)
		{
			if (group->arms[i].desc == scan)
				return group;
		}
	}
	return NULL;
}

void
cfd_arms_link(const void *state, int node, const IndexScanDesc *where, Relation index)
{
	for (CfdArms *group = groups; group != NULL; group = group->next)
	{
		if (group->state != state || group->inner != node)
			continue;
		group->where = where;
		group->index = index;
	}
}

bool
cfd_arms_value(Relation index, int column, Oid type, Datum value, CfdArmValue *to)
{
	Oid			own = index->rd_opcintype[column - 1];
	const CfdFunction *function =
		cfd_function(get_opfamily_proc(index->rd_opfamily[column - 1], own, type, BTORDER_PROC));

	if (function == NULL || function->call != CFD_CALL_ORDER || DatumGetUInt64(value) == 0)
		return false;
	to->fid = DatumGetUInt64(value);
	to->program = function->signature;
	return true;
}

/* ---------- pages ---------- */

/*
 * Copies the keys of a page and releases it. Returns NULL if the page is to be
 * ignored.
 */
static CfdQuestion *
read_page(const CfdArms *group, Buffer buffer)
{
	static CfdKeys page;
	CfdQuestion *question;
	CfdFid	   *keys;
	BlockNumber *children;

	cfd_page_copy(&page, group->index, buffer);
	if (page.ignore)
		return NULL;
	question = palloc0(sizeof(CfdQuestion));
	question->block = page.block;
	question->leaf = page.level == 0;
	question->next = page.next;
	question->items = page.items;
	question->count = page.count;
	question->keys = keys = palloc(sizeof(CfdFid) * ((Size) page.count * group->columns + 1));
	question->children = children = palloc(sizeof(BlockNumber) * (page.items + 1));
	for (int column = 1; column <= group->columns; column++)
	{
		for (int i = 0; i < page.count; i++)
			*keys++ = cfd_key_fid(group->index, cfd_page_key(&page, i), column);
	}
	for (int i = 0; i <= page.items && !question->leaf; i++)
		children[i] = cfd_page_child(&page, i);
	return question;
}

/* ---------- questions ---------- */

static bool
same_lead(const CfdArms *group, const CfdArmValue *a, const CfdArmValue *b)
{
	for (int i = 0; i < group->columns - 1; i++)
	{
		if (a[i].fid != b[i].fid || a[i].program != b[i].program)
			return false;
	}
	return true;
}

/* Number of values that an arm asks about. The upper bound matters on a leaf only. */
static int
values_asked(const CfdArm *arm, const CfdQuestion *question)
{
	return question->leaf ? arm->count : 1;
}

/*
 * Finds a question about the page that the arm can join. If all of them are
 * full, makes another one about the same page.
 */
static CfdQuestion *
question_for(const CfdArms *group, const CfdArm *arm, CfdQuestion *page, CfdQuestion **questions)
{
	CfdQuestion *copy;

	for (CfdQuestion *at = *questions; at != NULL && at->block == page->block; at = at->older)
	{
		if (at->values + group->columns - 1 + values_asked(arm, at) <= CFD_SEARCH_VALUES_MAX &&
			same_lead(group, at->lead, arm->lead))
			return at;
	}
	copy = palloc(sizeof(CfdQuestion));
	*copy = *page;
	copy->values = 0;
	copy->lead = arm->lead;
	copy->leads = group->columns - 1;
	copy->older = *questions;
	*questions = copy;
	return copy;
}

/* Adds the questions of all arms that are on the page. */
static void
add_questions(CfdArms *group, BlockNumber block, Buffer buffer, CfdQuestion **questions)
{
	CfdQuestion *page = read_page(group, buffer);

	for (int i = 0; i < group->count; i++)
	{
		CfdArm	   *arm = &group->arms[i];

		if (arm->block != block)
			continue;
		if (page == NULL)
		{
			arm->block = P_NONE;
			arm->pages = NULL;
			continue;
		}
		arm->asked = question_for(group, arm, page, questions);
		arm->at = arm->asked->values;
		for (int v = 0; v < values_asked(arm, page); v++)
			arm->asked->value[arm->asked->values++] = arm->values[v];
	}
}

static void
put_sought(StringInfo body, const CfdArmValue *value, uint32 flags)
{
	CfdWireSought sought = {.program = value->program,.flags = flags,.fid = value->fid};

	appendBinaryStringInfo(body, (char *) &sought, sizeof(sought));
}

/* Processes the answer to a question, if the keeper knew all keys. */
static void
take_places(CfdQuestion *question, const CfdWirePlace *places)
{
	int			leads = question->leads;
	uint32		begin = 0;
	uint32		end = question->count;

	for (int i = 0; i < leads + question->values; i++)
	{
		uint32		less = places[i].less;
		uint32		up_to = places[i].up_to;

		/* A key is no longer valid. The scan will handle that. */
		if (less == CFD_SEARCH_UNKNOWN)
			return;
		if (less > up_to || less < begin || up_to > end)
			cfd_violation("impossible place of a value");
		question->place[i] = (CfdPlace) {less, up_to};
		/*
		 * A value is searched for only among the keys that equal the preceding
		 * values.
		 */
		if (i < leads)
		{
			begin = less;
			end = up_to;
		}
	}
	question->answered = true;
}

/* Sends as many questions as fit into a message, and returns the rest. */
static CfdQuestion *
ask_some(CfdArms *group, CfdQuestion *questions)
{
	int			leads = group->columns - 1;
	CfdWireSearchMany fixed = {0};
	CfdReadSearchManyAnswer read;
	CfdQuestion *rest = questions;
	const CfdWirePlace *places;
	const char *answer;
	StringInfoData body;
	uint32		length;

	initStringInfo(&body);
	for (uint64 keys = 0; rest != NULL && keys < MESSAGE_KEYS; rest = rest->older)
	{
		CfdWireAmong among = {.values = leads + rest->values,.keys = rest->count};

		appendBinaryStringInfo(&body, (char *) &among, sizeof(among));
		fixed.searches++;
		fixed.values += among.values;
		keys += (uint64) rest->count * group->columns;
	}
	for (CfdQuestion *at = questions; at != rest; at = at->older)
	{
		for (int i = 0; i < leads; i++)
			put_sought(&body, &at->lead[i], 0);
		for (int i = 0; i < at->values; i++)
			put_sought(&body, &at->value[i], i > 0 ? CFD_SEARCH_BESIDE : 0);
	}
	for (CfdQuestion *at = questions; at != rest; at = at->older)
		appendBinaryStringInfo(&body, (const char *) at->keys, sizeof(CfdFid) * at->count * group->columns);
	answer = cfd_call(CFD_KIND_SEARCH_MANY, &fixed, sizeof(fixed), body.data, body.len, &length);
	group->round_trips++;
	CFD_DECODE(search_many_answer, answer, length, &read);
	if (read.places_count != fixed.values)
		cfd_violation("places of other values");
	places = read.places;
	for (CfdQuestion *at = questions; at != rest; at = at->older)
	{
		take_places(at, places);
		places += leads + at->values;
	}
	pfree(body.data);
	return rest;
}

/* ---------- descents ---------- */

/* The page where an arm goes next. */
static BlockNumber
next_page(const CfdArm *arm)
{
	const CfdQuestion *question = arm->asked;
	const CfdPlace *place;
	int			before;

	if (question == NULL || !question->answered)
		return P_NONE;
	place = &question->place[question->leads + arm->at];
	before = arm->behind_equals ? place->up_to : place->less;
	/* On a leaf, follow the range to its end. */
	if (question->leaf)
		before = place[arm->count - 1].up_to;
	if (question->next != P_NONE && question->count > 0 && before == question->count)
		return question->next;	/* beyond the high key */
	return question->leaf ? P_NONE : question->children[Min(before, question->items)];
}

/* Adds the page that an arm is on to those that it has come to; forgets all of them if it is not known. */
static void
note_page(CfdArm *arm)
{
	CfdArmPage *page;

	if (arm->last == NULL)
		arm->last = &arm->pages;
	if (arm->asked == NULL || !arm->asked->answered)
	{
		arm->pages = NULL;
		return;
	}
	page = palloc(sizeof(CfdArmPage));
	*page = (CfdArmPage) {.block = arm->asked->block,.question = arm->asked,.at = arm->at};
	*arm->last = page;
	arm->last = &page->next;
}

/*
 * Asks about the pages that the arms are on, and advances the arms. Returns
 * false when all arms have finished.
 */
static bool
take_step(CfdArms *group, Buffer root)
{
	CfdQuestion *questions = NULL;

	for (int i = 0; i < group->count; i++)
	{
		const CfdArm *arm = &group->arms[i];

		/* The page may have been handled for another arm. */
		if (arm->block == P_NONE || arm->asked != NULL)
			continue;
		add_questions(group, arm->block, BufferIsValid(root) ? root : _bt_getbuf(group->index, arm->block, BT_READ),
					  &questions);
	}
	if (questions == NULL)
		return false;
	while (questions != NULL)
		questions = ask_some(group, questions);
	for (int i = 0; i < group->count; i++)
	{
		CfdArm	   *arm = &group->arms[i];

		if (arm->asked != NULL)
			note_page(arm);
		arm->block = next_page(arm);
		arm->asked = NULL;
	}
	return true;
}

void
cfd_arms_ask(CfdArms *group)
{
	MemoryContext before = MemoryContextSwitchTo(group->asking);
	Buffer		root;

	group->asked = true;
	group->sweeps = cfd_sweeps();
	root = CFD_BT_ROOT(group->index);
	/* An index without a root page is empty. */
	if (BufferIsValid(root))
	{
		for (int i = 0; i < group->count; i++)
			group->arms[i].block = BufferGetBlockNumber(root);
		(void) take_step(group, root);
		for (int steps = 0; steps < STEPS_MAX && take_step(group, InvalidBuffer); steps++)
			CHECK_FOR_INTERRUPTS();
	}
	MemoryContextSwitchTo(before);
}

/* ---------- answers ---------- */

static bool
has_values(const CfdArms *group, const CfdArm *arm, const CfdWanted *wanted, int count)
{
	int			leads = group->columns - 1;

	if (count != leads + arm->count)
		return false;
	for (int i = 0; i < count; i++)
	{
		const CfdArmValue *value = i < leads ? &arm->lead[i] : &arm->values[i - leads];

		if (wanted[i].fid != value->fid || wanted[i].program != value->program || wanted[i].descending)
			return false;
	}
	return true;
}

const CfdArmPage *
cfd_arms_pages(CfdArms *group, const CfdWanted *wanted, int starts, int count, bool behind_equals)
{
	if (!group->asked || starts != group->columns || group->sweeps != cfd_sweeps())
		return NULL;
	/* The scans begin in the order of the arms, as a rule. */
	for (int i = 0; i < group->count; i++)
	{
		int			number = (group->found + i) % group->count;
		const CfdArm *arm = &group->arms[number];

		if (!has_values(group, arm, wanted, count))
			continue;
		group->found = number;
		for (const CfdArmPage *at = arm->pages; at != NULL && arm->behind_equals != behind_equals; at = at->next)
		{
			const CfdPlace *place = &at->question->place[group->columns - 1 + at->at];

			/* Behind the equal keys begins another page. */
			if (!at->question->leaf && place->less < place->up_to)
				return NULL;
		}
		return arm->pages;
	}
	return NULL;
}

void
cfd_arms_compared(const CfdArmPage *at, CfdWanted *wanted, int count, CfdCompared *to)
{
	const CfdQuestion *question = at->question;

	*to = (CfdCompared) {
		.wanted = wanted,
		.items = question->items,
		.count = question->count,
		.leaf = question->leaf,
		.fids = question->keys
	};
	/* The second bound of a range is placed on leaves only. */
	for (int i = 0; i < (question->leaf ? count : question->leads + 1); i++)
		wanted[i].place = question->place[i < question->leads ? i : i + at->at];
}
