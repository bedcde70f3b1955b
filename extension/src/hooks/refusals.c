/*
 * refusals.c
 *	  Refuses protected types where they cannot be stored: in tables of
 *	  other access methods, in foreign tables, inside arrays, composite
 *	  types, ranges and domains, in indexes on expressions of other families,
 *	  and in statistics on protected expressions. Also refuses plaintext constants in defaults and
 *	  constraints.
 *
 * Reads the catalogs as they are after the change, before the transaction
 * itself sees it (SnapshotSelf). Changes nothing, and takes note of dropped
 * relations.
 *
 * Invariant: after a successful DDL statement, FIDs are stored only in columns
 * of protected types, in relations with the access method "confide".
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_statistic_ext.h"
#include "catalog/pg_type.h"
#include "hooks/hooks.h"
#include "index/derived.h"
#include "nodes/nodeFuncs.h"
#include "schema/schema.h"
#include "value/types.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#define HINT_METHOD "Use ALTER TABLE %s SET ACCESS METHOD confide first."

static object_access_hook_type previous_access = NULL;

/*
 * Fetches a catalog row by its OID column and, if `number` is not 0, the
 * number in the following column. `index` is an index on these columns.
 * Returns NULL if there is no such row.
 */
static HeapTuple
catalog_row(Oid catalog, Oid index, AttrNumber column, Oid oid, int16 number)
{
	Relation	relation = table_open(catalog, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(oid));
	ScanKeyInit(&keys[1], column + 1, BTEqualStrategyNumber, F_INT2EQ, Int16GetDatum(number));
	scan = systable_beginscan(relation, index, true, SnapshotSelf, number == 0 ? 1 : 2, keys);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	return tuple;
}

/* The relevant properties of a relation. */
typedef struct Target
{
	Oid			oid;
	char		kind;
	Oid			method;
	bool		transient;		/* replaces another relation in a rewrite */
	bool		changed;		/* existed before, and a column is being changed */
	char		name[NAMEDATALEN];
} Target;

static bool
load_target(Target *target, Oid oid)
{
	HeapTuple	tuple = catalog_row(RelationRelationId, ClassOidIndexId, Anum_pg_class_oid, oid, 0);
	Form_pg_class form;
	char	   *original = NULL;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_class) GETSTRUCT(tuple);
	target->oid = oid;
	target->kind = form->relkind;
	target->method = form->relam;
	target->transient = OidIsValid(form->relrewrite);
	target->changed = false;
	/* In errors, show the original's name instead of the transient relation's. */
	if (target->transient)
		original = get_rel_name(form->relrewrite);
	strlcpy(target->name, original != NULL ? original : NameStr(form->relname), NAMEDATALEN);
	heap_freetuple(tuple);
	return true;
}

static void
refuse_inside(const Target *target, const Form_pg_attribute attribute)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("column \"%s\" of \"%s\" cannot have type %s", NameStr(attribute->attname),
					target->name, format_type_be(attribute->atttypid)),
			 errdetail("Protected values cannot be stored inside arrays, composites and ranges."),
			 errhint("Give each protected value a column of its own.")));
}

static void
refuse_relation(const Target *target, const Form_pg_attribute attribute)
{
	if (target->kind == RELKIND_FOREIGN_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" of foreign table \"%s\" cannot have the protected type %s",
						NameStr(attribute->attname), target->name, format_type_be(attribute->atttypid)),
				 errhint("Use a table with access method confide.")));
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("column \"%s\" of \"%s\" cannot have the protected type %s",
					NameStr(attribute->attname), target->name, format_type_be(attribute->atttypid)),
			 errdetail("Protected values can be stored only in tables with access method confide."),
			 target->changed ?
			 errhint(HINT_METHOD, quote_identifier(target->name)) :
			 errhint("Use the access method confide.")));
}

static void
check_attribute(const Target *target, const Form_pg_attribute attribute)
{
	if (attribute->attnum <= 0 || attribute->attisdropped || !cfd_type_contains(attribute->atttypid))
		return;
	if (cfd_type_code(attribute->atttypid) == 0)
		refuse_inside(target, attribute);
	if (target->kind == RELKIND_PARTITIONED_TABLE)
		return;					/* has no storage itself */
	if (target->kind == RELKIND_FOREIGN_TABLE || target->method != cfd_access_method())
		refuse_relation(target, attribute);
}

/* Calls a check for one attribute of a relation, or for all of them (number 0). */
static void
check_attributes(const Target *target, AttrNumber number, bool keys)
{
	Relation	relation = table_open(AttributeRelationId, AccessShareLock);
	ScanKeyData keyData[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keyData[0], Anum_pg_attribute_attrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(target->oid));
	ScanKeyInit(&keyData[1], Anum_pg_attribute_attnum, BTEqualStrategyNumber, F_INT2EQ,
				Int16GetDatum(number));
	scan = systable_beginscan(relation, AttributeRelidNumIndexId, true, SnapshotSelf,
							  number == 0 ? 1 : 2, keyData);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_attribute attribute = (Form_pg_attribute) GETSTRUCT(tuple);

		if (!keys)
			check_attribute(target, attribute);
		else if (attribute->attnum >= 1 && cfd_type_contains(attribute->atttypid) &&
				 target->method != BTREE_AM_OID && target->method != HASH_AM_OID)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("index \"%s\" cannot hold protected type %s", target->name,
							format_type_be(attribute->atttypid)),
					 errdetail("Of indexes that hold protected columns, garbage collection can read B-trees only."),
					 errhint("Use btree or hash, or leave the column out of INCLUDE.")));
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
}

/* The expression stored in a column of a catalog row, or NULL. */
static Node *
stored_expression(Oid catalog, Oid index, AttrNumber oid_column, AttrNumber column, Oid oid, int16 number)
{
	HeapTuple	tuple = catalog_row(catalog, index, oid_column, oid, number);
	Relation	relation;
	bool		isnull;
	Datum		datum;
	Node	   *node = NULL;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	relation = table_open(catalog, AccessShareLock);
	datum = heap_getattr(tuple, column, RelationGetDescr(relation), &isnull);
	if (!isnull)
		node = stringToNode(TextDatumGetCString(datum));
	table_close(relation, AccessShareLock);
	heap_freetuple(tuple);
	return node;
}

static void
refuse_indexed(const Target *target, Oid type, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("index \"%s\" cannot be on an expression of type %s", target->name, format_type_be(type)),
			 errdetail("%s", detail),
			 errhint("Index the column, or a generated column with the expression.")));
}

/* What an index's expression makes of protected columns must have an origin. */
static void
check_indexed(const Target *target, Oid table, Node *expression)
{
	Oid			type = exprType(expression);
	Bitmapset  *sources;
	int			number;

	/* A hash index stores hashes only. */
	if (!cfd_type_contains(type) || target->method == HASH_AM_OID)
		return;
	if (cfd_type_code(type) == 0)
		refuse_indexed(target, type, "Protected values cannot be stored inside arrays, composites and ranges.");
	sources = cfd_derived_sources(table, expression, &number);
	if (sources == NULL && number != 0)
		refuse_indexed(target, type, psprintf("Column \"%s\" has another family than enc_.",
											  get_attname(table, number, false)));
	if (sources == NULL)
		refuse_indexed(target, type, "It is not made of single columns of a type enc_...");
	if (bms_num_members(sources) > CFD_DERIVED_SOURCES_MAX)
		refuse_indexed(target, type, psprintf("It is made of more than %d columns.", CFD_DERIVED_SOURCES_MAX));
}

static void
check_index(const Target *target)
{
	HeapTuple	tuple = catalog_row(IndexRelationId, IndexRelidIndexId, Anum_pg_index_indexrelid, target->oid, 0);
	Form_pg_index form;
	ListCell   *cell;

	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_index) GETSTRUCT(tuple);
	check_attributes(target, 0, true);
	foreach(cell, (List *) stored_expression(IndexRelationId, IndexRelidIndexId, Anum_pg_index_indexrelid,
											 Anum_pg_index_indexprs, target->oid, 0))
		check_indexed(target, form->indrelid, lfirst(cell));
	heap_freetuple(tuple);
}

static void
check_relation(Oid oid, AttrNumber number)
{
	Target		target;

	if (!load_target(&target, oid))
		return;
	target.changed = number != 0;
	switch (target.kind)
	{
		case RELKIND_RELATION:
		case RELKIND_MATVIEW:
		case RELKIND_PARTITIONED_TABLE:
		case RELKIND_FOREIGN_TABLE:
			check_attributes(&target, number, false);
			break;
		case RELKIND_INDEX:
		case RELKIND_PARTITIONED_INDEX:
			check_index(&target);
			break;
		default:
			break;
	}
}

static void
check_statistics(Oid oid)
{
	List	   *expressions = (List *) stored_expression(StatisticExtRelationId, StatisticExtOidIndexId,
														 Anum_pg_statistic_ext_oid,
														 Anum_pg_statistic_ext_stxexprs, oid, 0);
	ListCell   *cell;

	foreach(cell, expressions)
	{
		if (cfd_type_contains(exprType(lfirst(cell))))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("statistics on expressions of protected types are not supported")));
	}
}

static void
after_change(Oid class, Oid object, int sub)
{
	switch (class)
	{
		case RelationRelationId:
			check_relation(object, sub);
			break;
		case AttrDefaultRelationId:	/* identified by relation and attribute */
			cfd_check_expression(stored_expression(AttrDefaultRelationId, AttrDefaultIndexId,
												   Anum_pg_attrdef_adrelid, Anum_pg_attrdef_adbin, object, sub));
			break;
		case ConstraintRelationId:
			cfd_check_expression(stored_expression(ConstraintRelationId, ConstraintOidIndexId,
												   Anum_pg_constraint_oid, Anum_pg_constraint_conbin, object, 0));
			break;
		case TypeRelationId:		/* a domain's default */
			cfd_check_expression(stored_expression(TypeRelationId, TypeOidIndexId, Anum_pg_type_oid,
												   Anum_pg_type_typdefaultbin, object, 0));
			break;
		case StatisticExtRelationId:
			check_statistics(object);
			break;
		case ProcedureRelationId:
			cfd_check_expression(stored_expression(ProcedureRelationId, ProcedureOidIndexId, Anum_pg_proc_oid,
												   Anum_pg_proc_prosqlbody, object, 0));
			break;
		case RewriteRelationId:
			cfd_check_expression(stored_expression(RewriteRelationId, RewriteOidIndexId, Anum_pg_rewrite_oid,
												   Anum_pg_rewrite_ev_action, object, 0));
			break;
		default:
			break;
	}
}

static void
before_drop(Oid class, Oid object, int sub)
{
	Target		target;

	if (class != RelationRelationId || sub != 0 || !load_target(&target, object))
		return;
	if ((target.kind == RELKIND_RELATION || target.kind == RELKIND_MATVIEW) &&
		target.method == cfd_access_method() && !target.transient)
		cfd_note_dropped(object);
}

static void
object_access(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	if (previous_access)
		previous_access(access, class, object, sub, arg);
	if (access == OAT_FUNCTION_EXECUTE)
		cfd_kept_function(object);
	if (access != OAT_POST_CREATE && access != OAT_POST_ALTER && access != OAT_DROP)
		return;
	/* A change of a column (sub != 0) neither creates nor drops the object. */
	cfd_schema_touch(class, object, access == OAT_POST_CREATE && sub == 0, access == OAT_DROP && sub == 0);
	if (!OidIsValid(cfd_access_method()))
		return;
	if (access == OAT_DROP)
		before_drop(class, object, sub);
	else
		after_change(class, object, sub);
}

void
cfd_refusals_init(void)
{
	previous_access = object_access_hook;
	object_access_hook = object_access;
}
