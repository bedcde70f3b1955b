/*
 * unchecked.c
 *	  Constraints on protected values in a session without a client, for
 *	  example when a superuser restores a dump. Such constraints cannot be
 *	  checked: evaluating them would disclose the results to the database,
 *	  and raising an error would lose the rows.
 *
 * A CHECK constraint is therefore not evaluated for the rows of COPY and
 * INSERT, and is marked NOT VALID. A foreign key does not look for the
 * referenced rows, and is marked NOT VALID, too; one that is added to a table
 * with rows is NOT VALID from the start. For partial indexes see
 * tableam/unready.h. The owner validates these constraints through the proxy.
 * Whoever can write without a client could also drop the constraints, so
 * nothing is lost that they protected.
 *
 * Invariants: with a client session nothing here has any effect; a skipped
 * constraint is not valid in the catalog, so that no plan relies on it.
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
#include "cell/cell.h"
#include "commands/tablecmds.h"
#include "commands/trigger.h"
#include "hooks/hooks.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "session/channel.h"
#include "storage/bufmgr.h"
#include "tableam/unready.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"
#include "value/types.h"

/*
 * A relation kept open for the duration of a statement, with a CHECK
 * constraint replaced by "true" or a foreign key trigger disabled.
 */
struct CfdUnchecked
{
	CfdUnchecked *next;
	Relation	relation;
	TupleDesc	desc;
	int			number;
	char	   *expression;		/* NULL: the entry is about the trigger */
	Oid			trigger;
	char		enabled;
};

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
make_not_valid(const char *kind, Relation relation, Oid constraint)
{
	Relation	catalog = table_open(ConstraintRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(CONSTROID, ObjectIdGetDatum(constraint));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for constraint %u", constraint);
	if (((Form_pg_constraint) GETSTRUCT(tuple))->convalidated)
	{
		((Form_pg_constraint) GETSTRUCT(tuple))->convalidated = false;
		CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
		CacheInvalidateRelcache(relation);
		cfd_unchecked_tell(kind, NameStr(((Form_pg_constraint) GETSTRUCT(tuple))->conname), relation);
	}
	heap_freetuple(tuple);
	table_close(catalog, RowExclusiveLock);
}

/* Whether a foreign key of the relation has a protected column. */
static bool
links_protected(Relation relation, const ForeignKeyCacheInfo *key)
{
	for (int i = 0; i < key->nkeys; i++)
	{
		if (cfd_family_code(TupleDescAttr(RelationGetDescr(relation), key->conkey[i] - 1)->atttypid) != 0)
			return true;
	}
	return false;
}

static bool
has_family(TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Oid			type = TupleDescAttr(desc, i)->atttypid;

		if (cfd_family_code(type) != 0 || cfd_array_code(type) != 0)
			return true;
	}
	return false;
}

/* Marks constraints that cannot be checked as not valid. */
static bool
invalidate(Oid oid)
{
	Relation	relation = table_open(oid, NoLock);
	TupleConstr *constraints = relation->rd_att->constr;
	bool		any = false;
	ListCell   *cell;

	if (!has_family(relation->rd_att))
	{
		table_close(relation, NoLock);
		return false;
	}
	for (int i = 0; constraints != NULL && i < constraints->num_check; i++)
	{
		if (!cfd_asks_keeper(stringToNode(constraints->check[i].ccbin), NULL))
			continue;
		make_not_valid("check constraint", relation,
					   get_relation_constraint_oid(oid, constraints->check[i].ccname, false));
		any = true;
	}
	foreach(cell, RelationGetFKeyList(relation))
	{
		ForeignKeyCacheInfo *key = lfirst(cell);

		if (!links_protected(relation, key))
			continue;
		make_not_valid("foreign key", relation, key->conoid);
		any = true;
	}
	any |= cfd_unready_insert(relation);
	/* The statement keeps its lock. */
	table_close(relation, NoLock);
	return any;
}

static bool
is_of_protected_key(Relation relation, const Trigger *trigger)
{
	ListCell   *cell;

	if (RI_FKey_trigger_type(trigger->tgfoid) != RI_TRIGGER_FK)
		return false;
	foreach(cell, RelationGetFKeyList(relation))
	{
		ForeignKeyCacheInfo *key = lfirst(cell);

		if (key->conoid == trigger->tgconstraint)
			return links_protected(relation, key);
	}
	return false;
}

/* Disables the triggers that look for the rows referenced by new rows. */
static CfdUnchecked *
pass_over_keys(Relation relation, CfdUnchecked *all)
{
	TriggerDesc *triggers = relation->trigdesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		Trigger    *trigger = &triggers->triggers[i];
		CfdUnchecked *entry;

		if (!is_of_protected_key(relation, trigger))
			continue;
		entry = palloc0(sizeof(CfdUnchecked));
		entry->next = all;
		entry->relation = relation;
		entry->trigger = trigger->tgoid;
		entry->enabled = trigger->tgenabled;
		RelationIncrementReferenceCount(relation);
		trigger->tgenabled = TRIGGER_DISABLED;
		all = entry;
	}
	return all;
}

/* Restores the trigger. The relcache entry may have been rebuilt meanwhile. */
static void
enable_key(const CfdUnchecked *entry)
{
	TriggerDesc *triggers = entry->relation->trigdesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		if (triggers->triggers[i].tgoid == entry->trigger)
			triggers->triggers[i].tgenabled = entry->enabled;
	}
}

/* Disables the constraints of a relation that is written to. */
static CfdUnchecked *
pass_over(Oid oid, CfdUnchecked *all)
{
	Relation	relation;
	TupleConstr *constraints;

	if (!invalidate(oid))
		return all;
	/* Prevents a rebuild of the relcache entry while the statement runs. */
	CommandCounterIncrement();
	relation = table_open(oid, NoLock);
	constraints = relation->rd_att->constr;
	for (int i = 0; constraints != NULL && i < constraints->num_check; i++)
	{
		ConstrCheck *check = &constraints->check[i];
		CfdUnchecked *entry;

		if (!cfd_asks_keeper(stringToNode(check->ccbin), NULL))
			continue;
		entry = palloc(sizeof(CfdUnchecked));
		*entry = (CfdUnchecked) {.next = all,.relation = relation,.desc = relation->rd_att,.number = i,
			.expression = check->ccbin};
		RelationIncrementReferenceCount(relation);
		check->ccbin = MemoryContextStrdup(CacheMemoryContext, nodeToString(makeBoolConst(true, false)));
		all = entry;
	}
	all = pass_over_keys(relation, all);
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
		if (all->expression != NULL)
		{
			ConstrCheck *check = &all->desc->constr->check[all->number];

			pfree(check->ccbin);
			check->ccbin = all->expression;
		}
		else
			enable_key(all);
		RelationDecrementReferenceCount(all->relation);
	}
}

/* ---------- foreign keys ---------- */

static bool
will_link_protected(Oid relation, const Constraint *key)
{
	ListCell   *cell;

	foreach(cell, key->fk_attrs)
	{
		AttrNumber	attribute = get_attnum(relation, strVal(lfirst(cell)));

		if (attribute > 0 && cfd_family_code(get_atttype(relation, attribute)) != 0)
			return true;
	}
	return false;
}

static bool
has_rows(Relation relation)
{
	return RELKIND_HAS_STORAGE(relation->rd_rel->relkind) && RelationGetNumberOfBlocks(relation) > 0;
}

/* The foreign key that a command adds, if existing rows would be checked. */
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
	/*
	 * Take the lock that PostgreSQL would take next. A weaker one first could
	 * lead to a deadlock.
	 */
	lock = AlterTableGetLockLevel(alter->cmds);
	oid = AlterTableLookupRelation(alter, lock);
	if (!OidIsValid(oid))
		return statement;
	relation = relation_open(oid, NoLock);
	statement = copyObject(statement);
	foreach(cell, ((AlterTableStmt *) statement->utilityStmt)->cmds)
	{
		Constraint *key = checked_key(lfirst_node(AlterTableCmd, cell));

		if (key == NULL || !will_link_protected(oid, key) || !has_rows(relation))
			continue;
		key->skip_validation = true;
		key->initially_valid = false;
		cfd_unchecked_tell("foreign key", key->conname == NULL ? strVal(linitial(key->fk_attrs)) : key->conname, relation);
	}
	relation_close(relation, NoLock);
	return statement;
}
