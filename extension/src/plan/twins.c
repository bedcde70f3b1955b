/*
 * twins.c
 *	  Makes twins of quals on encodings; see twins.h.
 *
 * Comparisons of a column with a constant, a parameter or a column have twins, and
 * what AND, OR and NOT make of them. Texts are compared by equality only: by
 * order the encodings refuse what the values would answer.
 *
 * Invariant: as in twins.h.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_coerce.h"
#include "plan/twins.h"
#include "soft/soft.h"
#include "utils/lsyscache.h"
#include "value/types.h"

typedef struct Making
{
	CfdWork    *work;
	List	   *cells;			/* columns that are compared */
} Making;

typedef struct Test
{
	PGFunction	function;
	const char *name;
	bool		is_order;
} Test;

static const Test tests[] = {
	{cfd_soft_lt, "<", true},
	{cfd_soft_le, "<=", true},
	{cfd_soft_eq, "=", false},
	{cfd_soft_ge, ">=", true},
	{cfd_soft_gt, ">", true},
	{cfd_soft_ne, "<>", false},
};

static const Test *
test_of(Oid function)
{
	FmgrInfo	info;

	if (function < FirstNormalObjectId)
		return NULL;
	fmgr_info(function, &info);
	for (int i = 0; i < lengthof(tests); i++)
	{
		if (tests[i].function == info.fn_addr)
			return &tests[i];
	}
	return NULL;
}

/* The value of an operand: a cast that opens its cell. */
static Node *
cfd_twin_opened(Making *making, Node *operand, uint8 code)
{
	Oid			target = cfd_type_oid(code);
	Oid			function = InvalidOid;

	while (IsA(operand, RelabelType))
		operand = (Node *) ((RelabelType *) operand)->arg;
	if (cfd_soft_code(exprType(operand)) != code)
		return NULL;
	if (IsA(operand, Var))
	{
		int32		modifier = ((Var *) operand)->vartypmod;
		CfdSoftKey	key = {.key = cfd_soft_key(modifier),.type = code,.shape = cfd_soft_shape(modifier)};

		if (((Var *) operand)->varlevelsup != 0 || key.key == 0 || !cfd_work_add_key(making->work, &key))
			return NULL;
		making->cells = list_append_unique(making->cells, operand);
	}
	else if (!IsA(operand, Const) && !(IsA(operand, Param) && ((Param *) operand)->paramkind == PARAM_EXTERN))
		return NULL;
	if (find_coercion_pathway(target, cfd_soft_oid(code), COERCION_EXPLICIT, &function) != COERCION_PATH_FUNC)
		return NULL;
	return (Node *) makeFuncExpr(function, target, list_make1(copyObject(operand)), InvalidOid, InvalidOid,
								 COERCE_EXPLICIT_CAST);
}

static Node *
twin_of_comparison(Making *making, OpExpr *expr)
{
	const Test *test;
	uint8		code;
	Oid			operator;
	Node	   *left;
	Node	   *right;
	int			before = list_length(making->cells);

	set_opfuncid(expr);
	test = test_of(expr->opfuncid);
	code = test == NULL || list_length(expr->args) != 2 ? 0 : cfd_soft_code(exprType(linitial(expr->args)));
	if (code == 0 || (code == CFD_TYPE_TEXT && test->is_order))
		return NULL;
	operator = OpernameGetOprid(list_make2(makeString("pg_catalog"), makeString(pstrdup(test->name))),
								cfd_type_oid(code), cfd_type_oid(code));
	left = cfd_twin_opened(making, linitial(expr->args), code);
	right = left == NULL ? NULL : cfd_twin_opened(making, lsecond(expr->args), code);
	if (right == NULL || !OidIsValid(operator) || (before == 0 && making->cells == NIL))
		return NULL;
	if (test->is_order)
		making->work->orders++;
	else
		making->work->equalities++;
	return (Node *) make_opclause(operator, BOOLOID, false, (Expr *) left, (Expr *) right, InvalidOid, InvalidOid);
}

static Node *
twin(Making *making, Node *qual)
{
	List	   *args = NIL;
	ListCell   *cell;

	if (IsA(qual, OpExpr))
		return twin_of_comparison(making, (OpExpr *) qual);
	if (!IsA(qual, BoolExpr))
		return NULL;
	foreach(cell, ((BoolExpr *) qual)->args)
	{
		Node	   *arg = twin(making, lfirst(cell));

		if (arg == NULL)
			return NULL;
		args = lappend(args, arg);
	}
	return (Node *) makeBoolExpr(((BoolExpr *) qual)->boolop, args, -1);
}

Node *
cfd_soft_twin(Node *qual, CfdWork *work)
{
	Making		making = {.work = work};
	Node	   *made = twin(&making, qual);

	work->cells += list_length(making.cells);
	return made;
}
