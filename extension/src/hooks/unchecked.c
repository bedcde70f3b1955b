/*
 * unchecked.c
 *	  Constraints that nobody can check: those that compare protected values, where there is no
 *	  client session (a superuser restores a dump). To check them would tell the database what it
 *	  asks; to fail would lose the rows.
 *
 * So a CHECK is not evaluated for the rows that COPY and INSERT bring, and becomes NOT VALID; a
 * foreign key that is added to a table with rows is NOT VALID from the start. Their owner
 * validates them through the proxy. Whoever may write without a client could drop constraints,
 * too: nothing is lost that they kept.
 *
 * Invariants: with a client session nothing here has any effect; a constraint that was passed over
 * is not valid in the catalog, so that no plan relies on it.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_constraint.h"
#include "commands/tablecmds.h"
#include "hooks/hooks.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "program/registry.h"
#include "session/channel.h"
#include "storage/bufmgr.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"
#include "value/types.h"

/* A relation that is open for as long as a statement runs, with a CHECK whose expression is "true". */
struct CfdUnchecked
{
	CfdUnchecked *next;
	Relation	relation;
	TupleDesc	desc;
	int			number;
	char	   *expression;
};

static bool
cfd_unchecked_is_ours(Oid function, void *context)
{
	(void) context;
	return cfd_function(function) != NULL;
}

static bool
compares_protected(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return check_functions_in_node(node, cfd_unchecked_is_ours, context) ||
		expression_tree_walker(node, compares_protected, context);
}

static void
cfd_unchecked_tell(const char *kind, const char *name, Relation relation)
{
	ereport(NOTICE,
			(errmsg("%s \"%s\" of relation \"%s\" is not checked, and becomes NOT VALID",
					kind, name, RelationGetRelationName(relation)),
			 errdetail("It compares protected values, and there is no client session."),
			 errhint("Validate it through the Confide proxy: ALTER TABLE ... VALIDATE CONSTRAINT.")));
}

static void
make_not_valid(Relation relation, const char *name)
{
	Relation	catalog = table_open(ConstraintRelationId, RowExclusiveLock);
	Oid			constraint = get_relation_constraint_oid(RelationGetRelid(relation), name, false);
	HeapTuple	tuple = SearchSysCacheCopy1(CONSTROID, ObjectIdGetDatum(constraint));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for constraint %u", constraint);
	if (((Form_pg_constraint) GETSTRUCT(tuple))->convalidated)
	{
		((Form_pg_constraint) GETSTRUCT(tuple))->convalidated = false;
		CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
		CacheInvalidateRelcache(relation);
		cfd_unchecked_tell("check constraint", name, relation);
	}
	heap_freetuple(tuple);
	table_close(catalog, RowExclusiveLock);
}

/* Checks that cannot be made are not valid from now on. */
static bool
invalidate(Oid oid)
{
	Relation	relation = table_open(oid, NoLock);
	TupleConstr *constraints = relation->rd_att->constr;
	bool		any = false;

	for (int i = 0; constraints != NULL && i < constraints->num_check; i++)
	{
		if (!compares_protected(stringToNode(constraints->check[i].ccbin), NULL))
			continue;
		make_not_valid(relation, constraints->check[i].ccname);
		any = true;
	}
	/* The statement has a lock. */
	table_close(relation, NoLock);
	return any;
}

/* The checks of a relation that is written. */
static CfdUnchecked *
pass_over(Oid oid, CfdUnchecked *all)
{
	Relation	relation;
	TupleConstr *constraints;

	if (!invalidate(oid))
		return all;
	/* So that the relation is not read anew while the statement runs. */
	CommandCounterIncrement();
	relation = table_open(oid, NoLock);
	constraints = relation->rd_att->constr;
	for (int i = 0; i < constraints->num_check; i++)
	{
		ConstrCheck *check = &constraints->check[i];
		CfdUnchecked *entry;

		if (!compares_protected(stringToNode(check->ccbin), NULL))
			continue;
		entry = palloc(sizeof(CfdUnchecked));
		*entry = (CfdUnchecked) {.next = all,.relation = relation,.desc = relation->rd_att,.number = i,
			.expression = check->ccbin};
		RelationIncrementReferenceCount(relation);
		check->ccbin = MemoryContextStrdup(CacheMemoryContext, nodeToString(makeBoolConst(true, false)));
		all = entry;
	}
	table_close(relation, NoLock);
	return all;
}

CfdUnchecked *
cfd_unchecked_insert(const PlannedStmt *plan)
{
	CfdUnchecked *all = NULL;
	ListCell   *cell;

	if (cfd_channel.had_client || plan->commandType != CMD_INSERT)
		return NULL;
	foreach(cell, plan->resultRelations)
		all = pass_over(rt_fetch(lfirst_int(cell), plan->rtable)->relid, all);
	return all;
}

CfdUnchecked *
cfd_unchecked_copy(const Node *statement)
{
	const CopyStmt *copy = (const CopyStmt *) statement;
	Oid			oid;

	if (cfd_channel.had_client || !IsA(statement, CopyStmt) || !copy->is_from || copy->relation == NULL)
		return NULL;
	oid = RangeVarGetRelid(copy->relation, RowExclusiveLock, true);
	return OidIsValid(oid) && get_rel_relkind(oid) == RELKIND_RELATION ? pass_over(oid, NULL) : NULL;
}

void
cfd_unchecked_end(CfdUnchecked *all)
{
	for (; all != NULL; all = all->next)
	{
		ConstrCheck *check = &all->desc->constr->check[all->number];

		pfree(check->ccbin);
		check->ccbin = all->expression;
		RelationDecrementReferenceCount(all->relation);
	}
}

/* ---------- foreign keys ---------- */

static bool
links_protected(Oid relation, const Constraint *key)
{
	ListCell   *cell;

	foreach(cell, key->fk_attrs)
	{
		AttrNumber	attribute = get_attnum(relation, strVal(lfirst(cell)));

		if (attribute > 0 && cfd_type_code(get_atttype(relation, attribute)) != 0)
			return true;
	}
	return false;
}

static bool
has_rows(Relation relation)
{
	return RELKIND_HAS_STORAGE(relation->rd_rel->relkind) && RelationGetNumberOfBlocks(relation) > 0;
}

/* The foreign key that a command adds, if rows that are there would be checked. */
static Constraint *
checked_key(const AlterTableCmd *command)
{
	Constraint *key = (Constraint *) command->def;

	if (command->subtype != AT_AddConstraint || !IsA(key, Constraint) || key->contype != CONSTR_FOREIGN)
		return NULL;
	return key->skip_validation ? NULL : key;
}

static bool
adds_checked_key(const AlterTableStmt *alter)
{
	ListCell   *cell;

	foreach(cell, alter->cmds)
	{
		if (checked_key(lfirst_node(AlterTableCmd, cell)) != NULL)
			return true;
	}
	return false;
}

PlannedStmt *
cfd_unchecked_foreign_keys(PlannedStmt *statement)
{
	AlterTableStmt *alter = (AlterTableStmt *) statement->utilityStmt;
	Relation	relation;
	ListCell   *cell;
	LOCKMODE	lock;
	Oid			oid;

	if (cfd_channel.had_client || !IsA(alter, AlterTableStmt) || alter->objtype != OBJECT_TABLE ||
		!adds_checked_key(alter))
		return statement;
	/* The lock that PostgreSQL would take next: a weaker one before it could end in a deadlock. */
	lock = AlterTableGetLockLevel(alter->cmds);
	oid = AlterTableLookupRelation(alter, lock);
	if (!OidIsValid(oid))
		return statement;
	relation = relation_open(oid, NoLock);
	statement = copyObject(statement);
	foreach(cell, ((AlterTableStmt *) statement->utilityStmt)->cmds)
	{
		Constraint *key = checked_key(lfirst_node(AlterTableCmd, cell));

		if (key == NULL || !links_protected(oid, key) || !has_rows(relation))
			continue;
		key->skip_validation = true;
		key->initially_valid = false;
		cfd_unchecked_tell("foreign key", key->conname == NULL ? strVal(linitial(key->fk_attrs)) : key->conname, relation);
	}
	relation_close(relation, NoLock);
	return statement;
}
