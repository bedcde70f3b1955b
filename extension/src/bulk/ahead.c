/*
 * ahead.c
 *	  Several scans' descents in one B-tree: see ahead.h.
 *
 * Scans at the same page share a message, and the messages of a level are all sent
 * before the first answer is awaited. Only scans that are bounded from below on the index's
 * first column, with values that are known when the plan starts. No lock is held while
 * the keeper is asked: a page that changes meanwhile has other keys, and is asked about anew.
 *
 * Invariants: as in ahead.h.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "bulk/ahead.h"
#include "bulk/pages.h"
#include "channel/channel.h"
#include "compat/compat.h"
#include "gc/pins.h"
#include "miscadmin.h"
#include "planner/functions.h"
#include "types/types.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Of each up to two values are in a message. */
#define SCANS_MAX (CFD_SEARCH_VALUES_MAX / 2)
/* Pages of one descent: height, and steps to the right. */
#define STEPS_MAX 32

/* A value, and how keys are compared with it. */
typedef struct Value
{
	CfdFid		fid;
	uint32		program;
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
	CfdFid	   *keys;
	BlockNumber *children;		/* of an inner page: before each key, and the last one */
	int			values;
	Value		value[CFD_SEARCH_VALUES_MAX];
	uint32		less[CFD_SEARCH_VALUES_MAX];
	uint32		up_to[CFD_SEARCH_VALUES_MAX];
	bool		answered;
	CfdRequest	request;
	struct Question *older;
} Question;

/* The scans of the statement that runs; one BitmapOr of them. */
typedef struct Arms
{
	MemoryContext context;		/* NULL: there are none */
	MemoryContextCallback at_end;
	Relation	index;
	int			count;
	Arm		scans[SCANS_MAX];
	bool		asked;
	uint64		sweeps;			/* of garbage before anything was asked */
	Question   *questions;
} Arms;

static Arms *group = NULL;

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
	Arm	   *arm = &to->scans[to->count];
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
forget(void *arg)
{
	if (group == arg)
		group = NULL;
}

static bool
is_searched(const PlanState *plan)
{
	Relation	index = IsA(plan, BitmapIndexScanState) ? ((const BitmapIndexScanState *) plan)->biss_RelationDesc : NULL;

	return index != NULL && cfd_type_code(index->rd_opcintype[0]) != 0 &&
		(index->rd_indoption[0] & INDOPTION_DESC) == 0;
}

void
cfd_ahead_plan(BitmapOrState *node)
{
	Arms	   *made;

	if (node->nplans < 2 || !is_searched(node->bitmapplans[0]))
		return;
	made = MemoryContextAllocZero(node->ps.state->es_query_cxt, sizeof(Arms));
	made->context = node->ps.state->es_query_cxt;
	for (int i = 0; i < node->nplans; i++)
	{
		if (is_searched(node->bitmapplans[i]))
			add_scan(made, (BitmapIndexScanState *) node->bitmapplans[i]);
	}
	if (made->count < 2)
		return;
	made->at_end.func = forget;
	made->at_end.arg = made;
	MemoryContextRegisterResetCallback(made->context, &made->at_end);
	group = made;
}

/* ---------- pages ---------- */

static CfdFid
key_fid(Relation index, IndexTuple tuple)
{
	bool		null;
	Datum		key;

	if (BTreeTupleGetNAtts(tuple, index) < 1)
		return CFD_SEARCH_BELOW;
	key = index_getattr(tuple, 1, RelationGetDescr(index), &null);
	if (!null)
		return DatumGetUInt64(key);
	return (index->rd_indoption[0] & INDOPTION_NULLS_FIRST) != 0 ? CFD_SEARCH_BELOW : CFD_SEARCH_ABOVE;
}

/* Takes the keys of a page in its order, the high key last, and lets go of it. NULL: it is not in use. */
static Question *
read_page(Relation index, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	BTPageOpaque opaque = BTPageGetOpaque(page);
	Question   *question = NULL;
	int			last = PageGetMaxOffsetNumber(page);
	int			first;

	if (!P_IGNORE(opaque))
	{
		question = palloc0(sizeof(Question));
		cfd_request_init(&question->request);
		question->block = BufferGetBlockNumber(buffer);
		question->leaf = P_ISLEAF(opaque);
		question->next = opaque->btpo_next;
		/* The first child of an inner page has no key: it is below all. */
		first = P_FIRSTDATAKEY(opaque) + (question->leaf ? 0 : 1);
		question->items = Min(Max(last - first + 1, 0), CFD_PAGE_KEYS_MAX - 1);
		question->count = question->items + (P_RIGHTMOST(opaque) ? 0 : 1);
		question->keys = palloc(sizeof(CfdFid) * (question->count + 1));
		question->children = palloc(sizeof(BlockNumber) * (question->items + 1));
		for (int i = 0; i < question->count; i++)
		{
			OffsetNumber at = i < question->items ? first + i : P_HIKEY;

			question->keys[i] = key_fid(index, (IndexTuple) PageGetItem(page, PageGetItemId(page, at)));
		}
		for (int i = 0; i <= question->items && !question->leaf; i++)
			question->children[i] =
				BTreeTupleGetDownLink((IndexTuple) PageGetItem(page, PageGetItemId(page, first - 1 + i)));
	}
	_bt_relbuf(index, buffer);
	return question;
}

/* ---------- questions ---------- */

/* Sends a question for all scans that are at its page. */
static void
send_question(Question *question)
{
	unsigned char body[CFD_FIXED_SEARCH + CFD_SEARCH_VALUES_MAX * 16];
	unsigned char *to = body + CFD_FIXED_SEARCH;

	for (int i = 0; i < group->count; i++)
	{
		Arm	   *arm = &group->scans[i];

		if (arm->block != question->block)
			continue;
		arm->asked = question;
		arm->at = question->values;
		/* The other bound is of interest on a leaf only. */
		for (int v = 0; v < (question->leaf ? arm->count : 1); v++)
			question->value[question->values++] = arm->values[v];
	}
	cfd_put32(body, question->values);
	cfd_put32(body + 4, question->count);
	for (int i = 0; i < question->values; i++, to += 16)
	{
		cfd_put32(to, question->value[i].program);
		cfd_put32(to + 4, i > 0 ? CFD_SEARCH_BESIDE : 0);
		cfd_put64(to + 8, question->value[i].fid);
	}
	cfd_request(&question->request, CFD_KIND_SEARCH, body, to - body, question->keys,
				sizeof(CfdFid) * question->count, 8 * question->values);
}

static void
take_answer(Question *question)
{
	uint32		length;
	const char *answer = cfd_await(&question->request, &length);

	if (length != 8 * (uint32) question->values)
		cfd_violation("place of a value has the wrong length");
	for (int i = 0; i < question->values; i++, answer += 8)
	{
		question->less[i] = cfd_get32(answer);
		question->up_to[i] = cfd_get32(answer + 4);
		/* A key names nothing any more: the scan will see. */
		if (question->less[i] == CFD_SEARCH_UNKNOWN)
			return;
		if (question->less[i] > question->up_to[i] || question->up_to[i] > (uint32) question->count)
			cfd_violation("impossible place of a value");
	}
	question->answered = true;
}

/* Where a scan goes from the page that was asked about for it. */
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

/* Asks about the page in a buffer, for all scans that are there; adds to other questions. */
static Question *
ask(Buffer buffer, Question *others)
{
	Question   *question = read_page(group->index, buffer);

	if (question == NULL)
		return others;
	question->older = others;
	send_question(question);
	return question;
}

/* Takes the answers to questions, and moves the scans that they were asked for. */
static void
take_step(Question *questions)
{
	Question   *last = NULL;

	for (Question *question = questions; question != NULL; question = question->older)
	{
		take_answer(question);
		last = question;
	}
	for (int i = 0; i < group->count; i++)
	{
		Arm	   *arm = &group->scans[i];

		arm->block = arm->asked == NULL ? P_NONE : next_page(arm);
		arm->asked = NULL;
	}
	if (last != NULL)
	{
		last->older = group->questions;
		group->questions = questions;
	}
}

/* All scans descend, from the root to the last leaves of their ranges. */
static void
descend(void)
{
	Buffer		root = CFD_BT_ROOT(group->index);

	if (!BufferIsValid(root))
		return;					/* the index is empty */
	for (int i = 0; i < group->count; i++)
		group->scans[i].block = BufferGetBlockNumber(root);
	take_step(ask(root, NULL));
	for (int steps = 0; steps < STEPS_MAX; steps++)
	{
		Question   *questions = NULL;

		cfd_hold();
		for (int i = 0; i < group->count; i++)
		{
			const Arm *arm = &group->scans[i];

			/* Another scan may have been here. */
			if (arm->block != P_NONE && arm->asked == NULL)
				questions = ask(_bt_getbuf(group->index, arm->block, BT_READ), questions);
		}
		if (questions == NULL)
			return;
		take_step(questions);
		CHECK_FOR_INTERRUPTS();
	}
}

void
cfd_ahead_scan(IndexScanDesc scan)
{
	MemoryContext before;

	if (group == NULL || group->asked)
		return;
	for (int i = 0; i < group->count; i++)
	{
		if (group->scans[i].desc != scan)
			continue;
		group->asked = true;
		group->sweeps = cfd_sweeps();
		before = MemoryContextSwitchTo(group->context);
		descend();
		MemoryContextSwitchTo(before);
		return;
	}
}

bool
cfd_ahead_asked(Relation index)
{
	return group != NULL && group->asked && group->index == index;
}

bool
cfd_ahead_find(const CfdFid *keys, int count, CfdFid value, uint32 program, uint32 *less, uint32 *up_to)
{
	if (group == NULL || cfd_sweeps() != group->sweeps)
		return false;
	for (const Question *question = group->questions; question != NULL; question = question->older)
	{
		if (!question->answered || question->count != count)
			continue;
		for (int i = 0; i < question->values; i++)
		{
			if (question->value[i].fid != value || question->value[i].program != program ||
				memcmp(question->keys, keys, sizeof(CfdFid) * count) != 0)
				continue;
			*less = question->less[i];
			*up_to = question->up_to[i];
			return true;
		}
	}
	return false;
}
