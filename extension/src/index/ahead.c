/*
 * ahead.c
 *	  Several scans' descents in one B-tree: see ahead.h.
 *
 * Descents at the same page share a message, and the messages of a level are all sent
 * before the first answer is awaited. Of an OR only scans that are bounded from below on the index's
 * first column, with values that are known when the plan starts; of an array one that is
 * the scan's only condition. No lock is held while the keeper is asked: a page that changes
 * meanwhile has other keys, and is asked about anew.
 *
 * Invariants: as in ahead.h.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "index/ahead.h"
#include "index/pages.h"
#include "known/known.h"
#include "session/channel.h"
#include "compat/compat.h"
#include "miscadmin.h"
#include "program/registry.h"
#include "value/types.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Of each scan up to two values are in a message, of an array's elements one. */
#define SCANS_MAX (CFD_SEARCH_VALUES_MAX / 2)
#define ARMS_MAX CFD_SEARCH_VALUES_MAX
/* Pages of one descent: height, and steps to the right. */
#define STEPS_MAX 32

/* A value, and how keys are compared with it. */
typedef struct Value
{
	CfdFid		fid;
	uint16		program;
} Value;

typedef struct Arm
{
	IndexScanDesc desc;
	Value		values[2];		/* where it begins, and the other bound if there is one */
	int			count;
	bool		behind_equals;	/* it begins behind what equals the value */
	BlockNumber block;			/* where it is; P_NONE: at its end */
	struct Question *asked;		/* what is asked for it there, and which of the values are its */
	int			at;
} Arm;

/* What was asked of a page. */
typedef struct Question
{
	BlockNumber block;
	bool		leaf;
	BlockNumber next;			/* to the right, or P_NONE */
	int			items;			/* keys without the high key */
	int			count;
	CfdFid	   *keys;			/* in the page's order, the high key last */
	BlockNumber *children;		/* of an inner page: before each key, and the last one */
	int			values;
	Value		value[CFD_SEARCH_VALUES_MAX];
	uint32		less[CFD_SEARCH_VALUES_MAX];
	uint32		up_to[CFD_SEARCH_VALUES_MAX];
	bool		answered;
	CfdRequest	request;
	struct Question *older;
} Question;

/* The scans of a BitmapOr, or some elements of a scan's array. */
typedef struct Arms
{
	MemoryContext context;
	MemoryContextCallback at_end;
	Relation	index;
	int			count;
	Arm			arms[ARMS_MAX];
	bool		asked;
	CfdScope	known;			/* where its values belong in the pages that were asked about */
	MemoryContext asking;		/* of questions and their keys */
	IndexScanDesc scan;			/* whose array it is, or NULL */
	int			end;			/* element behind those that were asked about */
	int			window;			/* how many were, the last time */
	struct Arms *next;
} Arms;

/* Those of the plans that run. */
static Arms *groups = NULL;

/* ---------- which scans ---------- */

static bool
take_value(Relation index, const ScanKeyData *key, Value *value)
{
	Oid			own = index->rd_opcintype[0];
	Oid			type = OidIsValid(key->sk_subtype) ? key->sk_subtype : own;
	const CfdFunction *function =
		cfd_function(get_opfamily_proc(index->rd_opfamily[0], own, type, BTORDER_PROC));

	if (function == NULL || function->call != CFD_CALL_ORDER || DatumGetUInt64(key->sk_argument) == 0)
		return false;
	value->fid = DatumGetUInt64(key->sk_argument);
	value->program = function->signature;
	return true;
}

/* Adds a scan with one equality, or with a lower bound and perhaps an upper one. */
static void
add_scan(Arms *to, const BitmapIndexScanState *node)
{
	IndexScanDesc desc = node->biss_ScanDesc;
	Arm		   *arm = &to->arms[to->count];
	const ScanKeyData *keys = node->biss_ScanKeys;
	int			count = node->biss_NumScanKeys;
	int			first = 0;

	if (to->count == SCANS_MAX || desc == NULL || node->biss_NumRuntimeKeys > 0 || node->biss_NumArrayKeys > 0 ||
		count < 1 || count > 2 || (to->count > 0 && node->biss_RelationDesc != to->index))
		return;
	for (int i = 0; i < count; i++)
	{
		if (keys[i].sk_attno != 1 || keys[i].sk_flags != 0)
			return;
		if (keys[i].sk_strategy >= BTEqualStrategyNumber)
			first = i;
	}
	/* Two bounds of a kind, or none below. */
	if (keys[first].sk_strategy < BTEqualStrategyNumber ||
		(count == 2 && (keys[first].sk_strategy == BTEqualStrategyNumber ||
						keys[1 - first].sk_strategy >= BTEqualStrategyNumber)))
		return;
	to->index = node->biss_RelationDesc;
	arm->desc = desc;
	arm->count = count;
	arm->behind_equals = keys[first].sk_strategy == BTGreaterStrategyNumber;
	if (!take_value(to->index, &keys[first], &arm->values[0]) ||
		(count == 2 && !take_value(to->index, &keys[1 - first], &arm->values[1])))
		return;
	to->count++;
}

static void
cfd_ahead_forget(void *arg)
{
	cfd_known_end(&((Arms *) arg)->known);
	for (Arms **at = &groups; *at != NULL; at = &(*at)->next)
	{
		if (*at == arg)
		{
			*at = (*at)->next;
			return;
		}
	}
}

static Arms *
make_arms(MemoryContext context)
{
	Arms	   *made = MemoryContextAllocZero(context, sizeof(Arms));

	made->context = made->known.context = context;
	made->asking = context;
	return made;
}

static void
add_arms(Arms *made)
{
	made->at_end.func = cfd_ahead_forget;
	made->at_end.arg = made;
	MemoryContextRegisterResetCallback(made->context, &made->at_end);
	made->next = groups;
	groups = made;
}

static bool
is_ascending(Relation index)
{
	return cfd_type_code(index->rd_opcintype[0]) != 0 && (index->rd_indoption[0] & INDOPTION_DESC) == 0;
}

static bool
is_searched(const PlanState *plan)
{
	Relation	index = IsA(plan, BitmapIndexScanState) ? ((const BitmapIndexScanState *) plan)->biss_RelationDesc : NULL;

	return index != NULL && is_ascending(index);
}

void
cfd_ahead_plan(BitmapOrState *node)
{
	Arms	   *made;

	if (node->nplans < 2 || !is_searched(node->bitmapplans[0]))
		return;
	made = make_arms(node->ps.state->es_query_cxt);
	for (int i = 0; i < node->nplans; i++)
	{
		if (is_searched(node->bitmapplans[i]))
			add_scan(made, (BitmapIndexScanState *) node->bitmapplans[i]);
	}
	if (made->count >= 2)
		add_arms(made);
}

/* ---------- pages ---------- */

/* Takes the keys of a page, and lets go of it. NULL: it is not in use. */
static Question *
read_page(Relation index, Buffer buffer)
{
	static CfdKeys page;
	Question   *question;

	cfd_page_copy(&page, index, buffer);
	if (page.ignore)
		return NULL;
	question = palloc0(sizeof(Question));
	cfd_request_init(&question->request);
	question->block = page.block;
	question->leaf = page.level == 0;
	question->next = page.next;
	question->items = page.items;
	question->count = page.count;
	question->keys = palloc(sizeof(CfdFid) * (page.count + 1));
	question->children = palloc(sizeof(BlockNumber) * (page.items + 1));
	for (int i = 0; i < page.count; i++)
		question->keys[i] = cfd_key_fid(index, cfd_page_key(&page, i), 1);
	for (int i = 0; i <= page.items && !question->leaf; i++)
		question->children[i] = cfd_page_child(&page, i);
	return question;
}

/* ---------- questions ---------- */

/* Sends a question for all arms that are at its page. */
static void
send_question(Arms *group, Question *question)
{
	CfdSearchBody body;

	for (int i = 0; i < group->count; i++)
	{
		Arm		   *arm = &group->arms[i];

		if (arm->block != question->block)
			continue;
		arm->asked = question;
		arm->at = question->values;
		/* The other bound is of interest on a leaf only. */
		for (int v = 0; v < (question->leaf ? arm->count : 1); v++)
			question->value[question->values++] = arm->values[v];
	}
	body.fixed = (CfdWireSearch) {.values = question->values,.keys = question->count};
	for (int i = 0; i < question->values; i++)
		body.sought[i] = (CfdWireSought)
	{
		.program = question->value[i].program,.flags = i > 0 ? CFD_SEARCH_BESIDE : 0,.fid = question->value[i].fid
	};
	cfd_request(&question->request, CFD_KIND_SEARCH, &body,
				sizeof(body.fixed) + sizeof(CfdWireSought) * question->values, question->keys,
				sizeof(CfdFid) * question->count, sizeof(CfdWirePlace) * question->values);
}

static void
cfd_ahead_take_answer(Arms *group, Question *question)
{
	uint32		length;
	const char *answer = cfd_await(&question->request, &length);
	CfdReadSearchAnswer read;

	CFD_DECODE(search_answer, answer, length, &read);
	if (read.places_count != (uint64) question->values)
		cfd_violation("places of other values");
	for (int i = 0; i < question->values; i++)
	{
		question->less[i] = read.places[i].less;
		question->up_to[i] = read.places[i].up_to;
		/* A key names nothing any more: the scan will see. */
		if (question->less[i] == CFD_SEARCH_UNKNOWN)
			return;
		if (question->less[i] > question->up_to[i] || question->up_to[i] > (uint32) question->count)
			cfd_violation("impossible place of a value");
	}
	question->answered = true;
	for (int i = 0; i < question->values; i++)
		cfd_known_put_place(&group->known, question->value[i].program, question->value[i].fid,
							question->keys, question->count, question->less[i], question->up_to[i]);
}

/* Where an arm goes from the page that was asked about for it. */
static BlockNumber
next_page(const Arm *arm)
{
	const Question *question = arm->asked;
	int			before = arm->behind_equals ? question->up_to[arm->at] : question->less[arm->at];

	if (!question->answered)
		return P_NONE;
	/* On leaves it goes on to where its range ends. */
	if (question->leaf)
		before = question->up_to[arm->at + arm->count - 1];
	if (question->next != P_NONE && question->count > 0 && before == question->count)
		return question->next;	/* beyond the high key */
	return question->leaf ? P_NONE : question->children[Min(before, question->items)];
}

/* Asks about the page in a buffer, for all arms that are there; adds to other questions. */
static Question *
cfd_ahead_ask(Arms *group, Buffer buffer, Question *others)
{
	Question   *question = read_page(group->index, buffer);

	if (question == NULL)
		return others;
	question->older = others;
	send_question(group, question);
	return question;
}

/* Takes the answers to questions, and moves the arms that they were asked for. */
static void
take_step(Arms *group, Question *questions)
{
	for (Question *question = questions; question != NULL; question = question->older)
		cfd_ahead_take_answer(group, question);
	for (int i = 0; i < group->count; i++)
	{
		Arm		   *arm = &group->arms[i];

		arm->block = arm->asked == NULL ? P_NONE : next_page(arm);
		arm->asked = NULL;
	}
}

/* All arms descend, from the root to the last leaves of their ranges. */
static void
cfd_ahead_descend(Arms *group)
{
	Buffer		root = CFD_BT_ROOT(group->index);

	if (!BufferIsValid(root))
		return;					/* the index is empty */
	for (int i = 0; i < group->count; i++)
		group->arms[i].block = BufferGetBlockNumber(root);
	take_step(group, cfd_ahead_ask(group, root, NULL));
	for (int steps = 0; steps < STEPS_MAX; steps++)
	{
		Question   *questions = NULL;

		cfd_hold();
		for (int i = 0; i < group->count; i++)
		{
			const Arm  *arm = &group->arms[i];

			/* Another arm may have been here. */
			if (arm->block != P_NONE && arm->asked == NULL)
				questions = cfd_ahead_ask(group, _bt_getbuf(group->index, arm->block, BT_READ), questions);
		}
		if (questions == NULL)
			return;
		take_step(group, questions);
		CHECK_FOR_INTERRUPTS();
	}
}

static void
ask_all(Arms *group)
{
	MemoryContext before = MemoryContextSwitchTo(group->asking);

	group->asked = true;
	cfd_known_begin(&group->known);
	cfd_ahead_descend(group);
	MemoryContextSwitchTo(before);
}

/* The group that a scan is an arm of, or whose array has them; or NULL. */
static Arms *
group_of(IndexScanDesc scan)
{
	for (Arms *group = groups; group != NULL; group = group->next)
	{
		if (group->scan == scan)
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
cfd_ahead_scan(IndexScanDesc scan)
{
	Arms	   *group = group_of(scan);

	if (group != NULL && !group->asked)
		ask_all(group);
}

/* ---------- arrays ---------- */

/* The array of a scan that has one condition, by elements that are looked up one after the other. */
static const BTArrayKeyInfo *
array_of(IndexScanDesc scan)
{
	const BTScanOpaqueData *so = (BTScanOpaque) scan->opaque;

	if (scan->numberOfKeys != 1 || so->numArrayKeys != 1 || scan->keyData[0].sk_attno != 1 ||
		!is_ascending(scan->indexRelation))
		return NULL;
	return &so->arrayKeys[0];
}

static Arms *
group_of_array(IndexScanDesc scan)
{
	Arms	   *group = group_of(scan);

	if (group != NULL)
		return group;
	/* This context ends with the array. */
	group = make_arms(((BTScanOpaque) scan->opaque)->arrayContext);
	group->asking = AllocSetContextCreate(group->context, "Confide search of an array", ALLOCSET_SMALL_SIZES);
	group->index = scan->indexRelation;
	group->scan = scan;
	add_arms(group);
	return group;
}

/* Makes arms of the elements from one on, as far as there is room. */
static void
take_elements(Arms *group, const BTArrayKeyInfo *array, int most)
{
	ScanKeyData key = group->scan->keyData[0];

	cfd_known_end(&group->known);
	MemoryContextReset(group->asking);
	group->asked = false;
	memset(group->arms, 0, sizeof(group->arms));
	group->count = 0;
	group->end = array->cur_elem;
	while (group->count < most && group->end < array->num_elems)
	{
		Arm		   *arm = &group->arms[group->count];

		key.sk_argument = array->elem_values[group->end];
		if (!take_value(group->index, &key, &arm->values[0]))
			return;
		arm->desc = group->scan;
		arm->count = 1;
		group->count++;
		group->end++;
	}
}

void
cfd_ahead_array(IndexScanDesc scan, bool all)
{
	const BTArrayKeyInfo *array = array_of(scan);
	Arms	   *group;

	if (array == NULL || array->num_elems < 2)
		return;
	group = group_of_array(scan);
	if (array->cur_elem < group->end)
		return;
	/* If the scan ends early, no more than twice the elements that it came to were asked about. */
	group->window = all ? ARMS_MAX : Min(Max(2 * group->window, 1), ARMS_MAX);
	take_elements(group, array, group->window);
	/* One alone asks for itself, and perhaps guesses its pages. */
	if (group->count > 1)
		ask_all(group);
}

bool
cfd_ahead_asked(IndexScanDesc scan)
{
	const Arms *group = group_of(scan);

	return group != NULL && group->asked;
}
