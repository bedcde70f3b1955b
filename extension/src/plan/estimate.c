/*
 * estimate.c
 *	  Estimators for protected columns; see estimate.h.
 *
 * The bounds of a histogram are in order. Hence the position of a value among
 * them, which PostgreSQL finds by bisection, gives the results of all tests.
 * Most common values are tested one by one. The tests of all comparisons of a
 * query are sent together with those of the first one. LIKE and other tests
 * that do not compare are made for all values of the statistics.
 *
 * Invariant: as in estimate.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "compat/compat.h"
#include "session/channel.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "known/known.h"
#include "plan/estimate.h"
#include "plan/planning.h"
#include "program/registry.h"
#include "value/types.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/selfuncs.h"

/* With fewer tests, a batch does not pay. */
#define TESTS_MIN 2
#define TESTS_MAX CFD_ROWS_MAX
/* The elements of longer arrays are tested singly. */
#define ELEMENTS_MAX 1024

typedef enum Kind
{
	OF_EQUALITY,
	OF_DIFFERENCE,
	OF_RANGE,
	OF_MATCH					/* a test that does not compare */
} Kind;

/* Smaller histograms are not tested for matches, nor are the bounds at the ends: matchingsel. */
#define MATCHED_MIN 10

/* Tests that an estimator will make; count 0 means none. */
typedef struct Tests
{
	int			count;
	const CfdFunction *function;
	CfdFid		constant;
	bool		constant_first;
	CfdFid	   *values;
} Tests;

/* Tests sent in one message, all with the same function. */
typedef struct Message
{
	const CfdFunction *function;
	int			rows;
	CfdRequest	request;
	struct Message *next;
} Message;

/* Adds the values of a statistics slot, if there are so many, without some at each end. */
static void
add_values(Tests *made, HeapTuple statistics, int kind, int least, int ends)
{
	AttStatsSlot slot;

	if (!get_attstatsslot(&slot, statistics, kind, InvalidOid, ATTSTATSSLOT_VALUES))
		return;
	made->values = made->values == NULL ? palloc(sizeof(CfdFid) * slot.nvalues) :
		repalloc(made->values, sizeof(CfdFid) * (made->count + slot.nvalues));
	for (int i = ends; i < slot.nvalues - ends && slot.nvalues >= least && made->count < TESTS_MAX; i++)
		made->values[made->count++] = DatumGetUInt64(slot.values[i]);
	free_attstatsslot(&slot);
}

/*
 * Describes the tests that an estimator of this kind will make. Sets count to
 * 0 if there are none or too few.
 */
static void
cfd_estimate_describe(Tests *made, Kind kind, Oid operator, bool column_first, Node *other, HeapTuple statistics)
{
	const CfdFunction *function;

	/* Use the same operator as PostgreSQL's estimators. */
	if (kind == OF_DIFFERENCE)
		operator = get_negator(operator);
	if (kind == OF_RANGE && !column_first)
		operator = get_commutator(operator);
	made->constant_first = kind != OF_RANGE && !column_first;
	made->function = function = cfd_function(get_opcode(operator));
	if (function == NULL || function->call != CFD_CALL_TEST || (function->holds == 0) != (kind == OF_MATCH) ||
		!IsA(other, Const) || ((Const *) other)->constisnull || !HeapTupleIsValid(statistics) ||
		cfd_type_code(((Const *) other)->consttype) == 0)
		return;
	made->constant = DatumGetUInt64(((Const *) other)->constvalue);
	if (made->constant == 0)
		return;
	add_values(made, statistics, STATISTIC_KIND_MCV, 0, 0);
	if (kind == OF_RANGE)
		add_values(made, statistics, STATISTIC_KIND_HISTOGRAM, 0, 0);
	if (kind == OF_MATCH)
		add_values(made, statistics, STATISTIC_KIND_HISTOGRAM, MATCHED_MIN, 1);
	if (made->count < TESTS_MIN)
		made->count = 0;
}

/* ---------- round trips ---------- */

static void
send_message(Message *message, const List *tests)
{
	CfdWireDeclassify body = {
		.program = message->function->signature,.rows = message->rows,.columns = 2
	};
	Size		column = sizeof(CfdFid) * message->rows;
	CfdFid	   *fids = palloc(2 * column);
	CfdFid	   *first = fids;
	CfdFid	   *second = fids + message->rows;
	ListCell   *cell;

	foreach(cell, tests)
	{
		const Tests *made = lfirst(cell);

		if (made->function != message->function)
			continue;
		for (int i = 0; i < made->count; i++)
		{
			*first++ = made->constant_first ? made->constant : made->values[i];
			*second++ = made->constant_first ? made->values[i] : made->constant;
		}
	}
	cfd_request(&message->request, CFD_KIND_DECLASSIFY, &body, sizeof(body), fids, 2 * column, message->rows);
}

/*
 * Answers live as long as the planning, or as the call of the estimator if it
 * is called outside of planning.
 */
static CfdScopeName
scope_of_tests(void)
{
	return cfd_planning != NULL ? CFD_SCOPE_PLANNING : CFD_SCOPE_ESTIMATE;
}

/* Under which signature, and as which orders, the results of a function are known. */
static uint16
comparison_of(const CfdFunction *function)
{
	return function->holds != 0 ? function->second : function->signature;
}

static uint8
orders_of(const CfdFunction *function)
{
	return function->holds != 0 ? function->holds : CFD_ORDER_HOLDS;
}

/*
 * Stores whether a test holds. Any other answer, as for a value that no longer
 * exists, is ignored.
 */
static void
put_answer(CfdScope *scope, const Tests *made, CfdFid value, char answer)
{
	uint8		holds = orders_of(made->function);

	if (answer == 0 || answer == 1)
		cfd_known_put_order(scope, comparison_of(made->function), made->constant_first ? made->constant : value,
							made->constant_first ? value : made->constant,
							answer == 1 ? holds : CFD_ORDER_ANY & ~holds);
}

static void
cfd_estimate_take_answer(Message *message, const List *tests)
{
	uint32		length;
	const char *answer = cfd_await(&message->request, &length);
	ListCell   *cell;

	if (length != (uint32) message->rows)
		cfd_violation("declassified results have the wrong length");
	foreach(cell, tests)
	{
		const Tests *made = lfirst(cell);

		if (made->function != message->function)
			continue;
		for (int i = 0; i < made->count; i++)
			put_answer(&cfd_known[scope_of_tests()], made, made->values[i], *answer++);
	}
}

/*
 * Makes the tests: one message per function, all sent before the first answer
 * is awaited.
 */
static void
make_tests(const List *tests)
{
	MemoryContext own = AllocSetContextCreate(CurrentMemoryContext, "Confide estimates", ALLOCSET_SMALL_SIZES);
	MemoryContext before = CurrentMemoryContext;
	Message    *messages = NULL;
	Message    *message;
	ListCell   *cell;

	Assert(tests != NIL);
	foreach(cell, tests)
	{
		const Tests *made = lfirst(cell);

		for (message = messages; message != NULL; message = message->next)
		{
			if (message->function == made->function)
				break;
		}
		MemoryContextSwitchTo(own);
		if (message == NULL)
		{
			message = palloc0(sizeof(Message));
			cfd_request_init(&message->request);
			message->function = made->function;
			message->next = messages;
			messages = message;
		}
		message->rows += made->count;
		MemoryContextSwitchTo(before);
	}
	MemoryContextSwitchTo(own);
	cfd_hold();
	for (message = messages; message != NULL; message = message->next)
		send_message(message, tests);
	for (message = messages; message != NULL; message = message->next)
		cfd_estimate_take_answer(message, tests);
	MemoryContextSwitchTo(before);
	MemoryContextDelete(own);
}

/* ---------- other conditions on the column ---------- */

static bool
kind_of(Oid operator, Kind *kind)
{
	List	   *meanings = CFD_MEANINGS(operator);
	int			strategy;

	if (meanings == NIL)
		return false;
	strategy = CFD_MEANING(linitial(meanings));
	*kind = strategy == BTEqualStrategyNumber ? OF_EQUALITY :
		strategy == CFD_MEANING_NE ? OF_DIFFERENCE : OF_RANGE;
	list_free_deep(meanings);
	return true;
}

/* Whether all of these tests have known results. */
static bool
tests_known(const Tests *made)
{
	for (int i = 0; i < made->count; i++)
	{
		bool		holds;

		if (!cfd_known_test(comparison_of(made->function), orders_of(made->function),
							made->constant_first ? made->constant : made->values[i],
							made->constant_first ? made->values[i] : made->constant, &holds))
			return false;
	}
	return true;
}

static bool
are_listed(const Tests *made, const List *tests)
{
	ListCell   *cell;

	foreach(cell, tests)
	{
		const Tests *other = lfirst(cell);

		if (other->function == made->function && other->constant == made->constant && other->count == made->count &&
			other->constant_first == made->constant_first && other->values[0] == made->values[0])
			return true;
	}
	return false;
}

/* Adds the tests of a condition, if there are any and there is room. */
static void
add_test(VariableStatData *column, Oid operator, bool column_first, Node *other,
		 int *room, List **tests)
{
	Tests	   *made = palloc0(sizeof(Tests));
	Kind		kind;

	/* PostgreSQL makes no tests if statistics must not be seen. */
	if (!kind_of(operator, &kind) || !statistic_proc_security_check(column, get_opcode(operator)))
		return;
	cfd_estimate_describe(made, kind, operator, column_first, other, column->statsTuple);
	if (made->count == 0 || made->count > *room || are_listed(made, *tests) || tests_known(made))
		return;
	*room -= made->count;
	*tests = lappend(*tests, made);
}

/* Adds the tests of an array's elements, as if each were a condition. */
static void
add_elements(VariableStatData *column, const ScalarArrayOpExpr *clause,
			 int *room, List **tests)
{
	const Const *array = lsecond(clause->args);
	Oid			type;
	Datum	   *elements;
	bool	   *nulls;
	int			count;

	if (!IsA(array, Const) || array->constisnull)
		return;
	type = get_element_type(array->consttype);
	if (cfd_type_code(type) == 0)
		return;
	deconstruct_array(DatumGetArrayTypeP(array->constvalue), type, sizeof(CfdFid), true, TYPALIGN_DOUBLE,
					  &elements, &nulls, &count);
	for (int i = 0; i < count && count <= ELEMENTS_MAX; i++)
		add_test(column, clause->opno, true,
				 (Node *) makeConst(type, -1, InvalidOid, sizeof(CfdFid), elements[i], nulls[i], true), room, tests);
}

/*
 * Whether a column is compared with a long list. Each element is estimated
 * separately. Asking about all of them would take longer than the query, and
 * declassify more.
 */
static bool
has_long_list(const VariableStatData *column)
{
	ListCell   *cell;

	foreach(cell, column->rel->baserestrictinfo)
	{
		const ScalarArrayOpExpr *clause = (const ScalarArrayOpExpr *) cfd_clause_of(lfirst(cell));
		const Const *array;
		ArrayType  *values;

		if (!IsA(clause, ScalarArrayOpExpr) || !equal(linitial(clause->args), column->var))
			continue;
		array = lsecond(clause->args);
		if (!IsA(array, Const) || array->constisnull)
			continue;
		values = DatumGetArrayTypeP(array->constvalue);
		if (ArrayGetNItems(ARR_NDIM(values), ARR_DIMS(values)) > ELEMENTS_MAX)
			return true;
	}
	return false;
}

/* Adds the tests of a comparison of a column with a constant, or with the elements of a list. */
static void
add_comparison(PlannerInfo *root, const OpExpr *clause, int *room, List **tests)
{
	Node	   *left = linitial(clause->args);
	Node	   *right = lsecond(clause->args);
	bool		column_first = IsA(right, Const);
	VariableStatData column;

	if (column_first == IsA(left, Const))
		return;
	examine_variable(root, column_first ? left : right, 0, &column);
	if (column.rel != NULL && HeapTupleIsValid(column.statsTuple) && !has_long_list(&column))
	{
		if (IsA(clause, ScalarArrayOpExpr))
			add_elements(&column, (const ScalarArrayOpExpr *) clause, room, tests);
		else
			add_test(&column, clause->opno, column_first, column_first ? right : left, room, tests);
	}
	ReleaseVariableStats(column);
}

/* Adds the tests for what these clauses and their arms state about columns, as far as there is room. */
static void
add_tests(PlannerInfo *root, const List *clauses, int *room, List **tests)
{
	ListCell   *cell;

	foreach(cell, clauses)
	{
		Node	   *clause = cfd_clause_of(lfirst(cell));

		if (is_andclause(clause) || is_orclause(clause))
			add_tests(root, ((BoolExpr *) clause)->args, room, tests);
		if ((IsA(clause, OpExpr) || IsA(clause, ScalarArrayOpExpr)) && list_length(((OpExpr *) clause)->args) == 2)
			add_comparison(root, (OpExpr *) clause, room, tests);
	}
}

/*
 * Makes the tests of all simple conditions of a query, also of those within conditions of joins, whose arms PostgreSQL
 * estimates before it takes from them what is about one table.
 */
static void
make_all_tests(PlannerInfo *root)
{
	List	   *tests = NIL;
	int			room = TESTS_MAX;

	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		const RelOptInfo *rel = root->simple_rel_array[i];

		if (rel == NULL || rel->reloptkind != RELOPT_BASEREL)
			continue;
		add_tests(root, rel->baserestrictinfo, &room, &tests);
		add_tests(root, rel->joininfo, &room, &tests);
	}
	if (tests != NIL)
		make_tests(tests);
}

/*
 * Makes the tests that an estimator will need for a restriction clause, if it
 * is a simple one.
 */
static void
test_beforehand(FunctionCallInfo fcinfo, Kind kind)
{
	Tests		made = {0};
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	List	   *args = (List *) PG_GETARG_POINTER(2);
	VariableStatData column;
	Node	   *other;
	bool		column_first;

	if (!get_restriction_variable(root, args, PG_GETARG_INT32(3), &column, &other, &column_first))
		return;
	/* PostgreSQL makes no tests if statistics must not be seen. */
	if (statistic_proc_security_check(&column, get_opcode(PG_GETARG_OID(1))))
		cfd_estimate_describe(&made, kind, PG_GETARG_OID(1), column_first, other, column.statsTuple);
	/* Assume that no element is a most common value. */
	if (made.count > 0 && kind != OF_MATCH && column.rel != NULL && has_long_list(&column))
	{
		for (int i = 0; i < made.count; i++)
			put_answer(&cfd_known[CFD_SCOPE_ESTIMATE], &made, made.values[i], 0);
	}
	else if (made.count > 0 && cfd_planning != NULL && column.rel != NULL && !tests_known(&made))
		make_all_tests(root);
	if (made.count > 0 && !tests_known(&made))
		make_tests(list_make1(&made));
	ReleaseVariableStats(column);
}

/* Calls PostgreSQL's estimator, which finds the results of the tests. */
static Datum
call_stock(FunctionCallInfo fcinfo, PGFunction stock, Kind kind)
{
	Datum		result;

	cfd_known_begin(&cfd_known[CFD_SCOPE_ESTIMATE]);
	PG_TRY();
	{
		test_beforehand(fcinfo, kind);
		result = DirectFunctionCall4Coll(stock, PG_GET_COLLATION(), PG_GETARG_DATUM(0), PG_GETARG_DATUM(1),
										 PG_GETARG_DATUM(2), PG_GETARG_DATUM(3));
	}
	PG_CATCH();
	{
		cfd_known_end(&cfd_known[CFD_SCOPE_ESTIMATE]);
		PG_RE_THROW();
	}
	PG_END_TRY();
	cfd_known_end(&cfd_known[CFD_SCOPE_ESTIMATE]);
	return result;
}

static Datum
estimate(FunctionCallInfo fcinfo, PGFunction stock, Kind kind)
{
	Datum		result = call_stock(fcinfo, stock, kind);

	if (kind == OF_RANGE)
		return Float8GetDatum(cfd_estimate_bound((PlannerInfo *) PG_GETARG_POINTER(0), (List *) PG_GETARG_POINTER(2),
												 PG_GETARG_INT32(3), DatumGetFloat8(result)));
	return result;
}

#define ESTIMATOR(name, kind) \
	PG_FUNCTION_INFO_V1(cfd_##name); \
	Datum \
	cfd_##name(PG_FUNCTION_ARGS) \
	{ \
		return estimate(fcinfo, name, kind); \
	}

ESTIMATOR(eqsel, OF_EQUALITY)
ESTIMATOR(neqsel, OF_DIFFERENCE)
ESTIMATOR(scalarltsel, OF_RANGE)
ESTIMATOR(scalarlesel, OF_RANGE)
ESTIMATOR(scalargtsel, OF_RANGE)
ESTIMATOR(scalargesel, OF_RANGE)
ESTIMATOR(matchingsel, OF_MATCH)
