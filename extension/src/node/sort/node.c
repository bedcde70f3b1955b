/*
 * node.c
 *	  Executes ConfideSort: reads all rows, has the keeper rank them by all
 *	  of their keys at once, and returns them in that order.
 *
 * Keys are sent to the keeper while rows arrive; plain keys are sent as
 * numbers. Plain keys that are not numbers are first ranked by PostgreSQL's
 * sort, and their ranks are sent when all rows have arrived. Under a LIMIT the
 * keeper is repeatedly asked for the first rows among those present, and the
 * other rows are dropped, as in PostgreSQL's bounded sort. Rows that exceed
 * work_mem go to a tuplestore and are sorted by rank with PostgreSQL's own
 * sort. If there are more rows than the keeper ranks at once, everything is
 * left to that sort, which compares.
 *
 * Invariants: the order is that of the Sort that the node replaces, except
 * among equal rows; the keeper learns of no row that PostgreSQL would not have
 * sorted.
 */
#include "postgres.h"

#include "cell/cell.h"
#include "compat/explain.h"
#include "executor/executor.h"
#include "known/known.h"
#include "order/ranks.h"
#include "program/registry.h"
#include "node/sort/sort.h"
#include "node/sort/state.h"
#include "miscadmin.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"

/* Distance at which a row's memory is fetched. */
#define ROWS_AHEAD 16

static const CustomExecMethods exec_methods;

/* ---------- executor startup ---------- */

static Node *
cfd_sort_create_state(CustomScan *node)
{
	CfdSortState *state = (CfdSortState *) newNode(sizeof(CfdSortState), T_CustomScanState);

	state->css.flags = node->flags;
	state->css.methods = &exec_methods;
	return (Node *) state;
}

/* Type code of the cells in a column; 0 if it has no cells. */
static uint8
cell_of_key(const CfdSortState *state, AttrNumber column)
{
	TupleDesc	desc = state->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor;

	return cfd_cell_code(TupleDescAttr(desc, column - 1)->atttypid);
}

static void
cfd_sort_read_keys(CfdSortState *state, const List *description)
{
	List	   *parts[CFD_SORT_PARTS];
	CfdRankKey *words = state->set.keys;

	for (int i = 0; i < CFD_SORT_PARTS; i++)
		parts[i] = list_nth_node(List, description, i);
	state->key_count = list_length(parts[CFD_SORT_COLUMN]);
	state->keys = palloc0(sizeof(Key) * state->key_count);
	for (int i = 0; i < state->key_count; i++)
	{
		Key		   *key = &state->keys[i];

		key->column = list_nth_int(parts[CFD_SORT_COLUMN], i);
		key->plain = (Oid) list_nth_int(parts[CFD_SORT_PLAIN], i);
		key->number = list_nth_int(parts[CFD_SORT_NUMBER], i);
		key->collation = (Oid) list_nth_int(parts[CFD_SORT_COLLATION], i);
		key->operator = (Oid) list_nth_int(parts[CFD_SORT_OPERATOR], i);
		key->descending = list_nth_int(parts[CFD_SORT_DESCENDING], i);
		key->nulls_first = list_nth_int(parts[CFD_SORT_NULLS_FIRST], i);
		key->cell = cell_of_key(state, key->column);
		/* A number takes two columns: whether it is NULL, and its value. */
		if (key->number)
			words++->descending = key->nulls_first;
		words->type = (uint8) list_nth_int(parts[CFD_SORT_TYPE], i);
		/* Ranks of plain keys already follow the order. */
		words->descending = key->descending && (words->type != 0 || key->number);
		state->waits |= words->type == 0 && !key->number;
		words++->nulls_first = key->nulls_first;
	}
	state->set.columns = words - state->set.keys;
	if (state->key_count == 1 && !OidIsValid(state->keys[0].plain))
	{
		const CfdFunction *equal = cfd_function(get_opcode(get_equality_op_for_ordering_op(state->keys[0].operator, NULL)));

		state->comparison = equal != NULL && equal->holds == CFD_ORDER_EQUAL ? equal->second : 0;
	}
}

static void
cfd_sort_begin(CustomScanState *node, EState *estate, int flags)
{
	CfdSortState *state = (CfdSortState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	const int	again = EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK;
	TupleDesc	desc = node->ss.ss_ScanTupleSlot->tts_tupleDescriptor;

	cfd_sort_read_keys(state, plan->custom_private);
	state->random_access = (flags & again) != 0;
	state->bounds = ExecInitExprList(plan->custom_exprs, &node->ss.ps);
	outerPlanState(state) = ExecInitNode(outerPlan(plan), estate, flags & ~again);
	state->kept = ExecInitExtraTupleSlot(estate, desc, &TTSOpsMinimalTuple);
	state->spilled = ExecInitExtraTupleSlot(estate, desc, &TTSOpsVirtual);
	/* The result may be in either of the two slots. */
	node->ss.ps.resultops = &TTSOpsMinimalTuple;
	node->ss.ps.resultopsset = true;
	node->ss.ps.resultopsfixed = false;
	state->context = AllocSetContextCreate(estate->es_query_cxt, "confide sort", ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < 2; i++)
		cfd_buffer_init(&state->driver.buffers[i], 0, NULL, 0);
	state->driver.methods = &cfd_sort_driver;
	state->driver.node = &node->ss.ps;
	state->driver.child = outerPlanState(state);
	/* No row is returned before all have been seen. */
	state->driver.first_rows = SEND_ROWS;
	cfd_driver_begin(&state->driver);
}

/* ---------- execution ---------- */

/* Maximum number of rows wanted; 0 for all. */
static int64
find_bound(CfdSortState *state)
{
	ExprContext *context = state->css.ss.ps.ps_ExprContext;
	int64		bound = 0;
	ListCell   *cell;

	foreach(cell, state->bounds)
	{
		bool		null;
		int64		rows = DatumGetInt64(ExecEvalExprSwitchContext(lfirst(cell), context, &null));

		if (null && foreach_current_index(cell) == 0)
			return 0;
		if (!null && rows > 0)
			bound += Min(rows, BOUND_MAX + 1);
	}
	return bound <= BOUND_MAX ? bound : 0;
}

static void
drop_all(CfdSortState *state)
{
	cfd_set_reset(&state->set);
	cfd_sort_end_plain_sorts(state);
	for (int i = 0; i < state->key_count; i++)
		state->keys[i].ranks = NULL;
	ExecClearTuple(state->kept);
	ExecClearTuple(state->spilled);
	if (state->store != NULL)
		tuplestore_end(state->store);
	if (state->wide != NULL)
		ExecDropSingleTupleTableSlot(state->wide);
	if (state->sorter != NULL)
		tuplesort_end(state->sorter);
	state->store = NULL;
	state->sorter = NULL;
	state->wide = NULL;
	state->rows = NULL;
	state->order = NULL;
	state->same = NULL;
	state->words = NULL;
	state->count = state->room = state->word_rows = 0;
	state->taken = state->row = 0;
	state->used = 0;
	state->at = state->mark = 0;
	state->done = state->ended = state->compares = false;
	MemoryContextReset(state->context);
}

static void
sort_rows(CfdSortState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	ScanDirection direction = estate->es_direction;
	MemoryContext before;

	estate->es_direction = ForwardScanDirection;
	before = MemoryContextSwitchTo(state->context);
	state->bound = find_bound(state);
	state->word_room = Max(SEND_ROWS, state->bound > 0 ? (uint32) state->bound + BOUND_ROWS : 0);
	state->words = palloc(sizeof(uint64) * state->word_room * state->set.columns);
	if (state->waits)
		cfd_sort_begin_plain_sorts(state);
	cfd_sort_take_rows(state);
	if (state->compares)
		cfd_sort_by_comparison(state);
	else if (state->store != NULL)
		cfd_sort_by_rank(state);
	cfd_set_reset(&state->set);
	MemoryContextSwitchTo(before);
	estate->es_direction = direction;
	state->done = true;
}

/* Moves like PostgreSQL's sort; `at` is the number of rows returned. */
static bool
move(CfdSortState *state, bool forward)
{
	if (forward)
	{
		state->ended = state->at >= state->count;
		state->at += !state->ended;
		return !state->ended;
	}
	if (state->ended)
		state->ended = false;
	else if (state->at > 0)
		state->at--;
	return state->at > 0;
}

/* Stores whether two values are equal, in both directions; 0 is no value. */
static void
tell_equality(CfdScope *known, const CfdSortState *state, CfdFid value, CfdFid other, bool same)
{
	uint8		possible = same ? CFD_ORDER_EQUAL : CFD_ORDER_LESS | CFD_ORDER_GREATER;

	if (other == 0)
		return;
	cfd_known_put_order(known, state->comparison, value, other, possible);
	cfd_known_put_order(known, state->comparison, other, value, possible);
}

/*
 * Nodes above (Unique, sorted grouping) compare the row with the preceding
 * one, or with the first of those that equal the preceding one. The ranks give
 * the answer.
 */
static void
tell_neighbour(CfdSortState *state, int64 place)
{
	CfdScope   *known = &cfd_known[CFD_SCOPE_SORTED];
	bool		null;
	Datum		value = slot_getattr(state->kept, state->keys[0].column, &null);
	bool		same = state->same[place];

	/* The sort was repositioned, or starts. */
	if (state->told + 1 != place)
		state->last = 0, state->last_same = false;
	/*
	 * The first row of the preceding group: the preceding row, unless it
	 * equalled earlier ones.
	 */
	if (!state->last_same)
		state->first = state->last;
	cfd_known_begin(known);
	if (!null)
	{
		tell_equality(known, state, DatumGetUInt64(value), state->last, same);
		if (state->first != state->last)
			tell_equality(known, state, DatumGetUInt64(value), state->first, same);
	}
	state->last = null ? 0 : DatumGetUInt64(value);
	state->last_same = same;
	state->told = place;
}

/*
 * Has the memory of rows that follow fetched: they were read in another order than they are returned
 * in. It is always inline, because GCC removes calls of a function that does nothing else.
 */
static pg_attribute_always_inline void
cfd_sort_fetch(const CfdSortState *state, int64 place)
{
	if (state->order == NULL || place + 2 * ROWS_AHEAD >= state->count)
		return;
	__builtin_prefetch(&state->rows[state->order[place + 2 * ROWS_AHEAD]]);
	__builtin_prefetch(state->rows[state->order[place + ROWS_AHEAD]]);
}

static TupleTableSlot *
next_kept(CfdSortState *state, bool forward)
{
	int64		place;

	if (!move(state, forward))
		return ExecClearTuple(state->kept);
	place = state->at - 1;
	cfd_sort_fetch(state, place);
	ExecStoreMinimalTuple(state->rows[state->order != NULL ? state->order[place] : place],
						  state->kept, false);
	if (forward && state->same != NULL)
		tell_neighbour(state, place);
	return state->kept;
}

static TupleTableSlot *
cfd_sort_next_row(CustomScanState *node)
{
	CfdSortState *state = (CfdSortState *) node;
	bool		forward = ScanDirectionIsForward(node->ss.ps.state->es_direction);

	CHECK_FOR_INTERRUPTS();
	if (!state->done)
		sort_rows(state);
	return state->sorter != NULL ? cfd_sort_next_spilled(state, forward) : next_kept(state, forward);
}

static void
cfd_sort_end(CustomScanState *node)
{
	CfdSortState *state = (CfdSortState *) node;

	drop_all(state);
	ExecEndNode(outerPlanState(state));
}

static void
cfd_sort_rescan(CustomScanState *node)
{
	CfdSortState *state = (CfdSortState *) node;
	PlanState  *outer = outerPlanState(state);

	if (!state->done)
		return;
	if (outer->chgParam == NULL && state->bounds == NIL &&
		(state->sorter == NULL || state->random_access))
	{
		state->at = 0;
		state->ended = false;
		if (state->sorter != NULL)
			tuplesort_rescan(state->sorter);
		return;
	}
	drop_all(state);
	if (outer->chgParam == NULL)
		ExecReScan(outer);
}

static void
cfd_sort_mark(CustomScanState *node)
{
	CfdSortState *state = (CfdSortState *) node;

	if (state->sorter != NULL)
		tuplesort_markpos(state->sorter);
	state->mark = state->at;
	state->mark_ended = state->ended;
}

static void
restore(CustomScanState *node)
{
	CfdSortState *state = (CfdSortState *) node;

	if (state->sorter != NULL)
		tuplesort_restorepos(state->sorter);
	state->at = state->mark;
	state->ended = state->mark_ended;
}

/* ---------- EXPLAIN ---------- */

static void
cfd_sort_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	CfdSortState *state = (CfdSortState *) node;
	Plan	   *plan = node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, plan, ancestors);
	bool		prefix = list_length(es->rtable) > 1 || es->verbose;
	List	   *names = NIL;

	for (int i = 0; i < state->key_count; i++)
	{
		const Key  *key = &state->keys[i];
		TargetEntry *entry = get_tle_by_resno(plan->targetlist, key->column);
		char	   *name = deparse_expression((Node *) entry->expr, context, prefix, true);

		names = lappend(names, psprintf("%s%s%s", name, key->descending ? " DESC" : "",
										key->nulls_first == key->descending ? "" :
										key->nulls_first ? " NULLS FIRST" : " NULLS LAST"));
	}
	ExplainPropertyList("Sort Key", names, es);
	if (es->analyze)
	{
		ExplainPropertyInteger("Rows Ranked", NULL, state->ranked, es);
		ExplainPropertyInteger("Round Trips", NULL, state->round_trips, es);
		ExplainPropertyText("Rows Kept", state->sorter != NULL ? "disk" : "memory", es);
	}
}

static const CustomExecMethods exec_methods = {
	.CustomName = "ConfideSort",
	.BeginCustomScan = cfd_sort_begin,
	.ExecCustomScan = cfd_sort_next_row,
	.EndCustomScan = cfd_sort_end,
	.ReScanCustomScan = cfd_sort_rescan,
	.MarkPosCustomScan = cfd_sort_mark,
	.RestrPosCustomScan = restore,
	.ExplainCustomScan = cfd_sort_explain,
};

const CustomScanMethods cfd_sort_methods = {
	.CustomName = "ConfideSort",
	.CreateCustomScanState = cfd_sort_create_state,
};
