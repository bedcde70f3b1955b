/*
 * soft.c
 *	  The family soft_ in DDL and queries. New columns get key numbers, and
 *	  parse analysis refuses what the encodings of a column cannot do.
 *
 * A key number is drawn at random among those that no column of the database
 * has. Columns defined with the same explicit number (key_17) share a key, and
 * can be compared and joined.
 *
 * Invariant: after a successful DDL statement, each column of the family has a
 * key and encodings; no query compares by order on a column without an order
 * encoding, or compares columns with different keys.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_type.h"
#include "cell/cell.h"
#include "compat/compat.h"
#include "hooks/hooks.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parse_type.h"
#include "plan/twins.h"
#include "soft/soft.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "value/types.h"

/* ---------- keys of new columns ---------- */

/* The key numbers in use. */
static Bitmapset *
used_keys(void)
{
	Relation	attributes = table_open(AttributeRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(attributes, InvalidOid, false, NULL, 0, NULL);
	Bitmapset  *used = NULL;
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_attribute form = (Form_pg_attribute) GETSTRUCT(tuple);

		if (form->atttypmod > 0 && cfd_soft_code(form->atttypid) != 0)
			used = bms_add_member(used, cfd_soft_key(form->atttypmod));
	}
	systable_endscan(scan);
	table_close(attributes, AccessShareLock);
	return used;
}

static uint32
new_key(void)
{
	Bitmapset  *used = used_keys();
	uint32		key;

	do
	{
		if (!pg_strong_random(&key, sizeof(key)))
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("could not draw a random number")));
		key &= (1 << CFD_SOFT_KEY_BITS) - 1;
		CHECK_FOR_INTERRUPTS();
	} while (key == 0 || bms_is_member(key, used));
	bms_free(used);
	return key;
}

static int32
new_modifier(uint8 code, int32 modifier)
{
	return cfd_soft_completed(code, modifier, cfd_soft_key(modifier) == 0 ? new_key() : 0);
}

/*
 * If a definition names a type of the family, returns its code and sets
 * *modifier; otherwise returns 0.
 */
static uint8
soft_named_code(TypeName *name, int32 *modifier)
{
	Type		type;
	uint8		code;
	Oid			oid;

	if (name == NULL || name->arrayBounds != NIL || name->setof)
		return 0;
	type = LookupTypeName(NULL, name, NULL, true);
	if (type == NULL)
		return 0;
	code = cfd_soft_code(typeTypeId(type));
	ReleaseSysCache(type);
	if (code != 0)
		typenameTypeIdAndMod(NULL, name, &oid, modifier);
	return code;
}

/* The column definition of the family in an ALTER TABLE command, or NULL. */
static ColumnDef *
soft_defined(const AlterTableCmd *command, uint8 *code, int32 *modifier)
{
	ColumnDef  *column = (ColumnDef *) command->def;

	if (command->subtype != AT_AddColumn && command->subtype != AT_AlterColumnType)
		return NULL;
	*code = soft_named_code(column->typeName, modifier);
	return *code != 0 ? column : NULL;
}

/* To be called before ALTER TABLE, which may compute values for the new columns. */
PlannedStmt *
cfd_soft_adapt(PlannedStmt *statement)
{
	AlterTableStmt *alter = (AlterTableStmt *) statement->utilityStmt;
	bool		concerned = false;
	ListCell   *cell;
	uint8		code;
	int32		modifier;

	if (alter == NULL || !IsA(alter, AlterTableStmt) || alter->objtype == OBJECT_TYPE ||
		!OidIsValid(cfd_access_method()))
		return statement;
	foreach(cell, alter->cmds)
		concerned = concerned || soft_defined(lfirst_node(AlterTableCmd, cell), &code, &modifier) != NULL;
	if (!concerned)
		return statement;
	statement = copyObject(statement);
	alter = castNode(AlterTableStmt, statement->utilityStmt);
	foreach(cell, alter->cmds)
	{
		ColumnDef  *column = soft_defined(lfirst_node(AlterTableCmd, cell), &code, &modifier);
		A_Const    *text = makeNode(A_Const);

		if (column == NULL)
			continue;
		text->val.sval = *makeString(psprintf("#%d", new_modifier(code, modifier)));
		text->location = -1;
		column->typeName->typmods = list_make1(text);
	}
	return statement;
}

static void
set_soft_modifier(Oid relation, AttrNumber number, bool copied)
{
	HeapTuple	tuple = SearchSysCacheCopy2(ATTNUM, ObjectIdGetDatum(relation), Int16GetDatum(number));
	Form_pg_attribute form;
	Relation	attributes;
	int32		modifier;
	uint8		code;

	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_attribute) GETSTRUCT(tuple);
	code = form->attisdropped || form->attinhcount > 0 ? 0 : cfd_soft_code(form->atttypid);
	if (code == 0 || (cfd_soft_key(form->atttypmod) != 0 && cfd_soft_encodings(form->atttypmod) != 0))
		return;
	if (copied)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot tell which key the values of column \"%s\" are encoded with",
						NameStr(form->attname)),
				 errhint("Create the table first, with the column's type and key.")));
	modifier = new_modifier(code, form->atttypmod);
	form->atttypmod = modifier;
	attributes = table_open(AttributeRelationId, RowExclusiveLock);
	CatalogTupleUpdate(attributes, &tuple->t_self, tuple);
	table_close(attributes, RowExclusiveLock);
	CommandCounterIncrement();
}

/* To be called after CREATE TABLE. */
void
cfd_soft_after(const Node *statement)
{
	const RangeVar *name = NULL;
	bool		copied = false;
	Oid			oid;
	int			natts;

	if (IsA(statement, CreateStmt))
		name = ((const CreateStmt *) statement)->relation;
	else if (IsA(statement, CreateForeignTableStmt))
		name = ((const CreateForeignTableStmt *) statement)->base.relation;
	else if (IsA(statement, CreateTableAsStmt))
	{
		name = ((const CreateTableAsStmt *) statement)->into->rel;
		copied = true;
	}
	if (name == NULL || !OidIsValid(cfd_access_method()))
		return;
	oid = RangeVarGetRelid(name, NoLock, true);
	natts = OidIsValid(oid) ? cfd_cell_natts(oid) : 0;
	for (int number = 1; number <= natts; number++)
		set_soft_modifier(oid, number, copied);
}

/* ---------- queries ---------- */

/*
 * Constants and parameters carry their key with them; it is checked when they
 * are compared.
 */
static bool
stands_alone(Node *expression)
{
	return IsA(expression, Const) || (IsA(expression, Param) && ((Param *) expression)->paramkind == PARAM_EXTERN);
}

static int32 origin(Node *expression);

/* Common origin of expressions of which one supplies the value. */
static int32
common_origin(const List *expressions)
{
	int32		found = -1;
	ListCell   *cell;

	foreach(cell, expressions)
	{
		int32		modifier = origin(lfirst(cell));

		if (stands_alone(lfirst(cell)))
			continue;
		if (modifier < 0 || (found >= 0 && found != modifier))
			return -1;
		found = modifier;
	}
	return found;
}

/* Type modifier of the column that the values come from, or -1 if it is unknown. */
static int32
origin(Node *expression)
{
	int32		modifier = exprTypmod(expression);

	if (modifier >= 0)
		return modifier;
	switch (nodeTag(expression))
	{
		case T_Aggref:
			if (list_length(((Aggref *) expression)->args) == 1)
				return origin((Node *) linitial_node(TargetEntry, ((Aggref *) expression)->args)->expr);
			return -1;
		case T_WindowFunc:
			return common_origin(((WindowFunc *) expression)->args);
		case T_SubLink:
			if (((SubLink *) expression)->subLinkType == EXPR_SUBLINK)
			{
				Query	   *query = castNode(Query, ((SubLink *) expression)->subselect);

				return origin((Node *) linitial_node(TargetEntry, query->targetList)->expr);
			}
			return -1;
		case T_CoalesceExpr:
			return common_origin(((CoalesceExpr *) expression)->args);
		case T_MinMaxExpr:
			return common_origin(((MinMaxExpr *) expression)->args);
		default:
			return -1;
	}
}

static void
want_order(Node *expression)
{
	uint8		code = cfd_soft_code(exprType(expression));
	uint8		encodings;
	int32		modifier;

	if (code == 0)
		return;
	modifier = origin(expression);
	encodings = cfd_soft_encodings(modifier);
	/* A check of a column that is just being created. */
	if (modifier >= 0 && encodings == 0)
		encodings = cfd_soft_usual(code);
	if ((encodings & CFD_SOFT_ORD) != 0)
		return;
	if (modifier < 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot tell whether an expression of type soft_%s has the encoding \"ord\"",
						cfd_plain_name(code)),
				 errhint("Order by a column.")));
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("a column of type soft_%s has no encoding \"ord\"", cfd_plain_name(code)),
			 errdetail("Its values cannot be ordered."),
			 errhint("%s", cfd_soft_hint())));
}

static void
want_orders(const List *clauses, List *targets)
{
	ListCell   *cell;

	foreach(cell, clauses)
		want_order(get_sortgroupclause_expr(lfirst_node(SortGroupClause, cell), targets));
}

void
cfd_soft_check_query(const Query *query)
{
	ListCell   *cell;

	want_orders(query->sortClause, query->targetList);
	foreach(cell, query->windowClause)
		want_orders(lfirst_node(WindowClause, cell)->orderClause, query->targetList);
}

static void
want_one_key(Node *left, Node *right)
{
	int32		a = origin(left);
	int32		b = origin(right);

	if (stands_alone(left) || stands_alone(right))
		return;
	if (a >= 0 && b >= 0 && cfd_soft_key(a) == cfd_soft_key(b) && cfd_soft_shape(a) == cfd_soft_shape(b))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("encodings with different keys cannot be compared"),
			 a >= 0 ? errhint("Give both columns one type and one key: soft_int4(key_%u).", cfd_soft_key(a)) :
			 errhint("Compare columns, not expressions.")));
}

pg_noreturn static void refuse_texts(void);

/* The client checks that a literal is short enough to have an exact order; stored texts are not. */
static void
refuse_texts(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("encoded texts have the order of their first bytes only"),
			 errhint("Compare one column with one literal, by an operator.")));
}

/* Checks a comparison by an operator. */
static void
check_operator(Oid operator, List *args)
{
	Node	   *left = linitial(args);
	Node	   *right;
	char	   *name;
	uint8		code;

	if (operator < FirstNormalObjectId || list_length(args) != 2)
		return;
	code = cfd_soft_code(exprType(left));
	name = get_opname(operator);
	/* Factors may have different keys. */
	if (code == 0 || name == NULL || name[0] == '@')
		return;
	right = lsecond(args);
	if (cfd_soft_code(exprType(right)) == code)
		want_one_key(left, right);
	if ((name[0] != '<' && name[0] != '>') || strcmp(name, "<>") == 0)
		return;
	if (!stands_alone(left) || stands_alone(right))
		want_order(left);
	if (!stands_alone(right))
		want_order(right);
	if (code == CFD_TYPE_TEXT && !stands_alone(left) && !stands_alone(right))
		refuse_texts();
}

/* Whether a comparison of a column needs an encoding that the column does not have. */
static bool
lacks_encoding(const OpExpr *expr)
{
	Node	   *column = NULL;
	char	   *name = get_opname(expr->opno);
	uint8		wanted;
	int32		modifier;

	if (name == NULL || name[0] == '@' || list_length(expr->args) != 2 ||
		cfd_soft_code(exprType(linitial(expr->args))) == 0)
		return false;
	for (int i = 0; i < 2 && column == NULL; i++)
	{
		if (!stands_alone(list_nth(expr->args, i)))
			column = list_nth(expr->args, i);
	}
	modifier = column == NULL ? -1 : origin(column);
	wanted = strcmp(name, "=") == 0 || strcmp(name, "<>") == 0 ? CFD_SOFT_EQ | CFD_SOFT_ORD : CFD_SOFT_ORD;
	return modifier >= 0 && cfd_soft_encodings(modifier) != 0 && (cfd_soft_encodings(modifier) & wanted) == 0;
}

/*
 * Has the keeper compare the values, if a column lacks the encoding and the
 * keeper has its key. Returns false, and changes nothing, if not.
 */
static bool
compare_in_keeper(OpExpr *expr)
{
	CfdWork		work = {0};
	Node	   *twin;

	if (expr->opno < FirstNormalObjectId || !lacks_encoding(expr))
		return false;
	twin = cfd_soft_twin((Node *) expr, &work);
	if (twin == NULL || !cfd_keeper_has_by_now(&work))
		return false;
	expr->opno = castNode(OpExpr, twin)->opno;
	expr->opfuncid = InvalidOid;
	set_opfuncid(expr);
	expr->args = castNode(OpExpr, twin)->args;
	return true;
}

static void
check_aggregate(const Aggref *aggregate)
{
	if (aggregate->aggkind == AGGKIND_NORMAL)
		want_orders(aggregate->aggorder, aggregate->args);
}

static void
want_orders_of(const List *expressions)
{
	ListCell   *cell;

	foreach(cell, expressions)
	{
		if (stands_alone(lfirst(cell)))
			continue;
		want_order(lfirst(cell));
		if (cfd_soft_code(exprType(lfirst(cell))) == CFD_TYPE_TEXT)
			refuse_texts();
	}
}

void
cfd_soft_check_node(Node *node)
{
	if (IsA(node, OpExpr) && compare_in_keeper((OpExpr *) node))
		return;
	switch (nodeTag(node))
	{
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			check_operator(((OpExpr *) node)->opno, ((OpExpr *) node)->args);
			break;
		case T_ScalarArrayOpExpr:
			check_operator(((ScalarArrayOpExpr *) node)->opno, ((ScalarArrayOpExpr *) node)->args);
			break;
		case T_RowCompareExpr:
			want_orders_of(((RowCompareExpr *) node)->largs);
			want_orders_of(((RowCompareExpr *) node)->rargs);
			break;
		case T_MinMaxExpr:
			want_orders_of(((MinMaxExpr *) node)->args);
			break;
		case T_Aggref:
			check_aggregate((const Aggref *) node);
			break;
		case T_CoerceViaIO:
			if (cfd_soft_code(exprType((Node *) ((CoerceViaIO *) node)->arg)) != 0 ||
				cfd_soft_code(((CoerceViaIO *) node)->resulttype) != 0)
				cfd_refuse_cast(exprType((Node *) ((CoerceViaIO *) node)->arg), ((CoerceViaIO *) node)->resulttype);
			break;
		default:
			break;
	}
}
