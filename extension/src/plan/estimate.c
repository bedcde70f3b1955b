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
 * Where the bisection comes to an end of the histogram, PostgreSQL compares the value with the column's
 * present minimum or maximum instead, which it takes from an index. That would be a round trip for each
 * condition, so the bound of the histogram stands for it, if the value is within the histogram: the
 * estimate is as good as the statistics. For values beyond them it is asked, for those of all conditions
 * on the column at once.
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
#include "plan/tests.h"
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

/* What is assumed of a constant and the present ends of its column. */
typedef struct Ends
{
	CfdSource	source;
	uint16		comparison;
	CfdFid		constant;
	uint8		possible;		/* any order: nothing is assumed */
	bool		ask;			/* nothing is assumed of an end until it was asked about */
	const RelOptInfo *rel;		/* the column */
	const Node *var;
} Ends;

static Ends ends;

/* Adds the values of a statistics slot, if there are so many, without some at each end. */
static void
add_values(CfdTests *made, HeapTuple statistics, int kind, int least, int ends)
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
cfd_estimate_describe(CfdTests *made, Kind kind, Oid operator, bool column_first, Node *other, HeapTuple statistics)
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
	made->histogram = made->count;
	if (kind == OF_RANGE)
		add_values(made, statistics, STATISTIC_KIND_HISTOGRAM, 0, 0);
	if (kind == OF_MATCH)
		add_values(made, statistics, STATISTIC_KIND_HISTOGRAM, MATCHED_MIN, 1);
	if (made->count < TESTS_MIN)
		made->count = 0;
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

/* Whether a test is one that this planning has made of a column's conditions. */
static bool
is_about(const CfdTests *made, const RelOptInfo *rel, const Node *var)
{
	return made->rel == rel && equal(made->var, var);
}

/* Compares an end of a column with the constants of all ranges that were asked about. */
static void
ask_about_end(const RelOptInfo *rel, const Node *var, CfdFid end)
{
	List	   *tests = NIL;
	ListCell   *cell;

	foreach(cell, cfd_planning->asked)
	{
		CfdTests	   *made = palloc(sizeof(CfdTests));

		*made = *(const CfdTests *) lfirst(cell);
		if (made->histogram == made->count || !is_about(made, rel, var))
			continue;
		made->count = 1;
		made->values = palloc(sizeof(CfdFid));
		made->values[0] = end;
		tests = lappend(tests, made);
	}
	if (list_length(tests) > 1)
		cfd_tests_make(tests);
}

static uint8
assumed_order(const CfdSource *source, uint16 comparison, CfdFid a, CfdFid b)
{
	if (comparison != ends.comparison || b != ends.constant)
		return CFD_ORDER_ANY;
	if (!ends.ask)
		return ends.possible;
	ends.ask = false;			/* not again */
	ask_about_end(ends.rel, ends.var, a);
	return cfd_known_find_orders(comparison, a, b);
}

static void
assume(const CfdTests *made, uint8 possible, const VariableStatData *asked)
{
	ends = (Ends) {
		.source = {.kind = CFD_FACT_ORDER,.assumed = assumed_order},
		.comparison = cfd_tests_comparison(made->function),
		.constant = made->constant,
		.possible = possible,
		.ask = asked != NULL,
		.rel = asked != NULL ? asked->rel : NULL,
		.var = asked != NULL ? asked->var : NULL
	};
	cfd_known_add_source(&cfd_known[CFD_SCOPE_ESTIMATE], &ends.source);
}

static bool
was_asked(const VariableStatData *column)
{
	ListCell   *cell;

	foreach(cell, cfd_planning != NULL ? cfd_planning->asked : NIL)
	{
		if (is_about(lfirst(cell), column->rel, column->var))
			return true;
	}
	return false;
}

/* Where PostgreSQL's bisection comes to an end of the histogram, that bound stands for the column's end. */
static void
assume_end(const CfdTests *made, const VariableStatData *column)
{
	int			bounds = made->count - made->histogram;
	int			low = 0;
	int			high = bounds;
	bool		first;
	bool		last;

	/* Of a histogram with two bounds PostgreSQL looks for both ends. */
	if (bounds < 3 || !cfd_test_known(made, made->histogram, &first) || !cfd_test_known(made, made->count - 1, &last))
		return;
	if (first == last && was_asked(column))
		assume(made, CFD_ORDER_ANY, column);
	while (first != last && low < high)
	{
		int			probe = (low + high) / 2;
		uint8		where = cfd_tests_orders(made->function);
		bool		holds;

		if (!cfd_test_known(made, made->histogram + probe, &holds))
			return;
		if (probe == 0 || probe == bounds - 1)
		{
			assume(made, holds ? where : CFD_ORDER_ANY & ~where, NULL);
			return;
		}
		if (holds == first)
			low = probe + 1;
		else
			high = probe;
	}
}

static bool
are_listed(const CfdTests *made, const List *tests)
{
	ListCell   *cell;

	foreach(cell, tests)
	{
		const CfdTests *other = lfirst(cell);

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
	CfdTests	   *made = palloc0(sizeof(CfdTests));
	Kind		kind;

	/* PostgreSQL makes no tests if statistics must not be seen. */
	if (!kind_of(operator, &kind) || !statistic_proc_security_check(column, get_opcode(operator)))
		return;
	cfd_estimate_describe(made, kind, operator, column_first, other, column->statsTuple);
	if (made->count == 0 || made->count > *room || are_listed(made, *tests) || cfd_tests_known(made))
		return;
	*room -= made->count;
	made->rel = column->rel;
	made->var = column->var;
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
	MemoryContext before = MemoryContextSwitchTo(cfd_planning->context);

	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		const RelOptInfo *rel = root->simple_rel_array[i];

		if (rel == NULL || rel->reloptkind != RELOPT_BASEREL)
			continue;
		add_tests(root, rel->baserestrictinfo, &room, &tests);
		add_tests(root, rel->joininfo, &room, &tests);
	}
	cfd_planning->asked = list_concat(cfd_planning->asked, tests);
	MemoryContextSwitchTo(before);
	if (tests != NIL)
		cfd_tests_make(tests);
}

/*
 * Makes the tests that an estimator will need for a restriction clause, if it
 * is a simple one.
 */
static void
test_beforehand(FunctionCallInfo fcinfo, Kind kind)
{
	CfdTests		made = {0};
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
			cfd_tests_put(&cfd_known[CFD_SCOPE_ESTIMATE], &made, made.values[i], 0);
	}
	else if (made.count > 0 && cfd_planning != NULL && column.rel != NULL && !cfd_tests_known(&made))
		make_all_tests(root);
	if (made.count > 0 && !cfd_tests_known(&made))
		cfd_tests_make(list_make1(&made));
	if (made.count > 0 && kind == OF_RANGE)
		assume_end(&made, &column);
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
