/*
 * arms.c
 *	  Several descents in one B-tree, side by side: see arms.h.
 *
 * Pages of a level are read one after the other, and asked about in one message, each page once
 * for all arms that are there. No lock is held while the keeper is asked: a page that changes
 * meanwhile has other keys, and is asked about anew.
 *
 * Invariant: as of ahead.h.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "compat/compat.h"
#include "index/arms.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "program/registry.h"
#include "session/channel.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Pages of one descent: height, and steps to the right. */
#define STEPS_MAX 32
/* No question is added to a message with so many keys. */
#define MESSAGE_KEYS 65536

/* What was asked of a page. */
typedef struct CfdQuestion
{
	BlockNumber block;
	bool		leaf;
	BlockNumber next;			/* to the right, or P_NONE */
	int			items;			/* keys without the high key */
	int			count;
	const CfdFid *keys;			/* column by column, in the page's order, the high key last */
	const BlockNumber *children;	/* of an inner page: before each key, and the last one */
	const CfdArmValue *lead;	/* of all its arms */
	int			values;
	CfdArmValue value[CFD_SEARCH_VALUES_MAX];
	uint32		less[CFD_SEARCH_VALUES_MAX];
	uint32		up_to[CFD_SEARCH_VALUES_MAX];
	bool		answered;
	struct CfdQuestion *older;
} CfdQuestion;

/* Those of the plans that run. */
static CfdArms *groups = NULL;

/* ---------- groups ---------- */

CfdArms *
cfd_arms_make(MemoryContext context, int room)
{
	CfdArms    *made = MemoryContextAllocZero(context, sizeof(CfdArms));

	made->context = made->known.context = context;
	made->arms = MemoryContextAllocZero(context, sizeof(CfdArm) * room);
	made->room = room;
	made->columns = 1;
	made->asking = AllocSetContextCreate(context, "Confide searches", ALLOCSET_SMALL_SIZES);
	return made;
}

static void
forget_arms(void *arg)
{
	cfd_known_end(&((CfdArms *) arg)->known);
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
	cfd_known_end(&group->known);
	MemoryContextReset(group->asking);
	group->asked = false;
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

/* Takes the keys of a page, and lets go of it. NULL: it is not in use. */
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

/* How many values an arm asks about: the other bound is of interest on a leaf only. */
static int
values_asked(const CfdArm *arm, const CfdQuestion *question)
{
	return question->leaf ? arm->count : 1;
}

/* The question about a page that an arm can join; a new one about the same page, if others are full. */
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
	copy->older = *questions;
	*questions = copy;
	return copy;
}

/* Adds questions about a page for all arms that are there. */
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

/* Takes the answer to a question: facts, where the keeper knew the keys. */
static void
take_places(CfdArms *group, CfdQuestion *question, const CfdWirePlace *places)
{
	int			leads = group->columns - 1;
	uint32		begin = 0;
	uint32		end = question->count;

	for (int i = 0; i < leads + question->values; i++)
	{
		uint32		column = Min(i, leads);
		const CfdArmValue *value = i < leads ? &question->lead[i] : &question->value[i - leads];
		uint32		less = places[i].less;
		uint32		up_to = places[i].up_to;

		/* A key names nothing any more: the scan will see. */
		if (less == CFD_SEARCH_UNKNOWN)
			return;
		if (less > up_to || less < begin || up_to > end)
			cfd_violation("impossible place of a value");
		/* A value is sought only among the keys that equal those before it. */
		cfd_known_put_place(&group->known, value->program, value->fid,
							question->keys + column * question->count + begin, end - begin,
							less - begin, up_to - begin);
		if (i < leads)
		{
			begin = less;
			end = up_to;
			continue;
		}
		question->less[i - leads] = less;
		question->up_to[i - leads] = up_to;
	}
	question->answered = true;
}

/* Asks as many questions as a message takes; gives the rest of them. */
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
		take_places(group, at, places);
		places += leads + at->values;
	}
	pfree(body.data);
	return rest;
}

/* ---------- descents ---------- */

/* Where an arm goes from the page that was asked about for it. */
static BlockNumber
next_page(const CfdArm *arm)
{
	const CfdQuestion *question = arm->asked;
	int			before;

	if (question == NULL || !question->answered)
		return P_NONE;
	before = arm->behind_equals ? question->up_to[arm->at] : question->less[arm->at];
	/* On leaves it goes on to where its range ends. */
	if (question->leaf)
		before = question->up_to[arm->at + arm->count - 1];
	if (question->next != P_NONE && question->count > 0 && before == question->count)
		return question->next;	/* beyond the high key */
	return question->leaf ? P_NONE : question->children[Min(before, question->items)];
}

/* Asks about the pages where arms are, and moves these on. False: all are at their end. */
static bool
take_step(CfdArms *group, Buffer root)
{
	CfdQuestion *questions = NULL;

	for (int i = 0; i < group->count; i++)
	{
		const CfdArm *arm = &group->arms[i];

		/* Another arm may have been here. */
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
	cfd_known_begin(&group->known);
	root = CFD_BT_ROOT(group->index);
	/* An index without a root is empty. */
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
