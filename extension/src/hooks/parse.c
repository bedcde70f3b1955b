/*
 * parse.c
 *	  Checks each query after parse analysis, and expressions stored in
 *	  catalogs. Refuses casts between protected and other types through
 *	  text (which would be an envelope, not the value), and plaintext
 *	  constants that are combined with protected values.
 *
 * The only changes made are to what stars include (stars.c), to queries whose
 * results are to be signed (shown.c), and to statements that erase versions of
 * ledger tables (erase.c).
 *
 * Invariant: a query without protected types passes.
 */
#include "postgres.h"

#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "cell/cell.h"
#include "hooks/hooks.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "ops/plain.h"
#include "optimizer/optimizer.h"
#include "parser/analyze.h"
#include "schema/schema.h"
#include "session/channel.h"
#include "value/shown.h"
#include "value/types.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

static post_parse_analyze_hook_type previous_analyze = NULL;

void
cfd_refuse_cast(Oid from, Oid to)
{
	ereport(ERROR,
			(errcode(ERRCODE_CANNOT_COERCE),
			 errmsg("cannot cast type %s to %s", format_type_be(from), format_type_be(to)),
			 errdetail("A protected value's text is an envelope, not the value."),
			 errhint("Cast between protected types; plain values enter by casts from their own type.")));
}

static bool
varies(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Param:
		case T_SubLink:
		case T_Aggref:
		case T_GroupingFunc:
		case T_WindowFunc:
		case T_SetToDefault:
		case T_CurrentOfExpr:
		case T_NextValueExpr:
		case T_CaseTestExpr:
		case T_CoerceToDomainValue:
			return true;
		default:
			return expression_tree_walker(node, varies, context);
	}
}

static bool
cfd_parse_has_null(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Const))
		return ((Const *) node)->constisnull;
	return expression_tree_walker(node, cfd_parse_has_null, context);
}

/* Whether an expression is a NULL, which is no plaintext value. */
static bool
folds_to_null(Node *node)
{
	if (!cfd_parse_has_null(node, NULL))
		return false;
	node = eval_const_expressions(NULL, (Node *) copyObject(node));
	return IsA(node, Const) && ((Const *) node)->constisnull;
}

static bool
cfd_parse_is_constant(Node *node)
{
	if (IsA(node, Const))
		return !((Const *) node)->constisnull;
	return !varies(node, NULL) && !contain_mutable_functions(node) && !folds_to_null(node);
}

static void
check_function(FuncExpr *function)
{
	uint8		to;
	Node	   *arg;
	Oid			from;

	/* Casts from plain types are in pg_catalog; users' functions may take constants. */
	if (list_length(function->args) != 1 ||
		get_func_namespace(function->funcid) != PG_CATALOG_NAMESPACE)
		return;
	to = cfd_type_code(function->funcresulttype);
	if (to == 0)
		return;
	arg = linitial(function->args);
	from = exprType(arg);
	for (int code = 1; code <= CFD_TYPE_MAX; code++)
	{
		if (cfd_plain_oid(code) == from && cfd_parse_is_constant(arg))
			cfd_refuse_constant(code);
	}
}

/* The queries that contain an expression, innermost first. */
typedef struct Queries
{
	List	   *list;
} Queries;

static bool check(Node *node, void *context);

static bool
check_query(Query *query, Queries *outer)
{
	Queries		inner = {lcons(query, list_copy(outer->list))};

	cfd_soft_check_query(query);
	cfd_check_ordered_query(query);
	return query_tree_walker(query, check, &inner, 0);
}

static bool
check(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return check_query((Query *) node, (Queries *) context);
	if (IsA(node, CoerceViaIO))
	{
		CoerceViaIO *cast = (CoerceViaIO *) node;
		Oid			from = exprType((Node *) cast->arg);

		if (cfd_family_code(from) != 0 || cfd_type_code(cast->resulttype) != 0)
			cfd_refuse_cast(from, cast->resulttype);
	}
	else if (IsA(node, FuncExpr))
		check_function((FuncExpr *) node);
	cfd_soft_check_node(node);
	cfd_check_ordered(node);
	cfd_check_packed(node, ((Queries *) context)->list);
	return expression_tree_walker(node, check, context);
}

void
cfd_check_expression(Node *node)
{
	Queries		none = {NIL};

	(void) check(node, &none);
}

/* The query inside a utility statement, if it was analysed with it. */
static Node *
inner_query(Node *statement)
{
	Node	   *query = NULL;

	if (statement == NULL)
		return NULL;
	if (IsA(statement, ExplainStmt))
		query = ((ExplainStmt *) statement)->query;
	else if (IsA(statement, CreateTableAsStmt))
		query = ((CreateTableAsStmt *) statement)->query;
	else if (IsA(statement, DeclareCursorStmt))
		query = ((DeclareCursorStmt *) statement)->query;
	return query != NULL && IsA(query, Query) ? query : NULL;
}

static void
analyze(ParseState *state, Query *query, JumbleState *jumble)
{
	cfd_schema_asked(query);
	/*
	 * Constants have been sent by now, but not what they are compared with.
	 * EXECUTE has its statement's constants read later.
	 */
	if (cfd_channel.query == 0 && cfd_running.outermost == NULL && query->commandType != CMD_UTILITY)
		cfd_statement_is(query->queryId);
	if (OidIsValid(cfd_access_method()))
	{
		Node	   *node = (Node *) query;

		cfd_take_grants(state->p_sourcetext);
		while (node != NULL && ((Query *) node)->commandType == CMD_UTILITY)
			node = inner_query(((Query *) node)->utilityStmt);
		cfd_check_expression(node);
		if (node != NULL)
		{
			cfd_stars_narrow(state, (Query *) node);
			cfd_shown_find(state, (Query *) node);
			cfd_erase_aim((Query *) node);
		}
	}
	if (previous_analyze)
		previous_analyze(state, query, jumble);
}

void
cfd_parse_init(void)
{
	previous_analyze = post_parse_analyze_hook;
	post_parse_analyze_hook = analyze;
}
