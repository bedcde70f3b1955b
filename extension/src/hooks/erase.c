/*
 * erase.c
 *	  DELETE FROM t WHERE sn = n, and WHERE sn <= n, on a ledger table
 *	  (SecuDB, section 6.2): these erase versions in its history. The
 *	  values are removed while their hashes stay (docs/ledger.md).
 *
 * The statement is redirected to the history, so it requires the DELETE
 * privilege on the history, which its owner has and can grant. A function call
 * added to the condition tells ledger/erase.c which versions are meant.
 *
 * A DELETE with any other condition is not handled here; it ends rows of the
 * table.
 *
 * Invariant: unless the condition has exactly one of the two forms, the
 * statement is not changed.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "compat/compat.h"
#include "hooks/hooks.h"
#include "ledger/ledger.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "parser/parse_func.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "value/types.h"

/*
 * The column with the version numbers of a ledger table; InvalidAttrNumber if
 * it is not a ledger table.
 */
static AttrNumber
number_column(Oid table)
{
	AttrNumber	number = get_attnum(table, "sn");

	if (number == InvalidAttrNumber || cfd_ledger_role(get_atttype(table, number)) != CFD_LEDGER_TABLE)
		return InvalidAttrNumber;
	return number;
}

static Var *
column_in(Node *node)
{
	while (IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return IsA(node, Var) ? (Var *) node : NULL;
}

/* The expression that the numbers are compared with; NULL: an ordinary DELETE. */
static Node *
erased_number(const Query *query, AttrNumber column, bool *through)
{
	OpExpr	   *condition = (OpExpr *) query->jointree->quals;
	const char *name;
	const Var  *var;

	if (condition == NULL || !IsA(condition, OpExpr) || list_length(condition->args) != 2 ||
		list_length(query->jointree->fromlist) != 1)
		return NULL;
	name = get_opname(condition->opno);
	*through = name != NULL && strcmp(name, "<=") == 0;
	if (!*through && (name == NULL || strcmp(name, "=") != 0))
		return NULL;
	var = column_in(linitial(condition->args));
	if (var == NULL || var->varno != query->resultRelation || var->varattno != column || var->varlevelsup != 0)
		return NULL;
	switch (exprType(lsecond(condition->args)))
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
			return lsecond(condition->args);
		default:
			return NULL;
	}
}

static void
check_erasing(const Query *query, Oid table, Node *number)
{
	const char *what = NULL;

	if (get_rel_relkind(table) == RELKIND_PARTITIONED_TABLE)
		what = "Each partition is a ledger of its own: name the partition.";
	else if (query->returningList != NIL)
		what = "RETURNING would give what shall be erased.";
	else if (contain_var_clause(number) || contain_subplans(number) || contain_volatile_functions(number))
		what = "The number is a constant or a parameter.";
	if (what != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot erase versions of ledger table \"%s\" by this statement", get_rel_name(table)),
				 errdetail("%s", what)));
}

/*
 * Makes a call of confide.ledger_erasing(history, number, through), which
 * returns true and is evaluated once per execution.
 */
static Node *
announcement(Oid history, Node *number, bool through)
{
	Oid			types[3] = {REGCLASSOID, INT8OID, BOOLOID};
	Oid			function = LookupFuncName(list_make2(makeString("confide"), makeString("ledger_erasing")), 3, types, false);
	Node	   *wide = coerce_to_target_type(NULL, (Node *) copyObject(number), exprType(number), INT8OID, -1,
											 COERCION_EXPLICIT, COERCE_IMPLICIT_CAST, -1);
	Const	   *which = makeConst(REGCLASSOID, -1, InvalidOid, sizeof(Oid), ObjectIdGetDatum(history), false, true);
	List	   *arguments = list_make3(which, wide, makeBoolConst(through, false));

	return (Node *) makeFuncExpr(function, BOOLOID, arguments, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

/* Replaces the table by its history. */
static void
aim_at(Query *query, Relation history, Node *number, bool through)
{
	RangeTblEntry *entry = rt_fetch(query->resultRelation, query->rtable);
	CfdPermissions *permissions = CFD_PERMISSIONS(query, entry);
	OpExpr	   *condition = (OpExpr *) query->jointree->quals;
	TupleDesc	desc = RelationGetDescr(history);
	AttrNumber	column = get_attnum(RelationGetRelid(history), "sn");
	Var		   *var = column_in(linitial(condition->args));
	Alias	   *names = makeAlias(RelationGetRelationName(history), NIL);

	if (column == InvalidAttrNumber)
		elog(ERROR, "a history has no numbers");
	for (int i = 0; i < desc->natts; i++)
	{
		const char *name = TupleDescAttr(desc, i)->attisdropped ? "" : NameStr(TupleDescAttr(desc, i)->attname);

		names->colnames = lappend(names->colnames, makeString(pstrdup(name)));
	}
	entry->relid = RelationGetRelid(history);
	entry->eref = names;
	entry->alias = NULL;
	entry->inh = false;
	permissions->relid = entry->relid;
	permissions->requiredPerms = ACL_DELETE | ACL_SELECT;
	permissions->selectedCols = bms_make_singleton(column - FirstLowInvalidHeapAttributeNumber);
	var->varattno = var->varattnosyn = column;
	var->vartype = TupleDescAttr(desc, column - 1)->atttypid;
	query->jointree->quals = (Node *) makeBoolExpr(AND_EXPR,
												   list_make2(condition, announcement(entry->relid, number, through)), -1);
}

void
cfd_erase_aim(Query *query)
{
	Oid			table;
	AttrNumber	column;
	Node	   *number;
	bool		through;
	Relation	relation;
	Relation	history;
	ListCell   *cell;

	foreach(cell, query->cteList)
	{
		CommonTableExpr *with = lfirst_node(CommonTableExpr, cell);

		if (IsA(with->ctequery, Query))
			cfd_erase_aim((Query *) with->ctequery);
	}
	if (query->commandType != CMD_DELETE)
		return;
	table = rt_fetch(query->resultRelation, query->rtable)->relid;
	column = number_column(table);
	number = column == InvalidAttrNumber ? NULL : erased_number(query, column, &through);
	if (number == NULL)
		return;
	check_erasing(query, table, number);
	relation = table_open(table, NoLock);
	history = cfd_ledger_open_history(relation, RowExclusiveLock);
	aim_at(query, history, number, through);
	table_close(history, NoLock);
	table_close(relation, NoLock);
}
