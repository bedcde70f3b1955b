/*
 * refusals.c
 *	  Refuses protected types where they cannot be stored: in tables of
 *	  other access methods, in foreign tables, inside composite types,
 *	  ranges, domains over arrays and arrays of domains, in indexes on
 *	  expressions of other families, and in statistics on protected
 *	  expressions; arrays of protected types also in indexes, statistics and
 *	  ledger tables. Also refuses plaintext constants in defaults and
 *	  constraints.
 *
 * Reads the catalogs as they are after the change, before the transaction
 * itself sees it (SnapshotSelf). Changes nothing, and takes note of dropped
 * relations.
 *
 * Invariant: after a successful DDL statement, FIDs are stored only in columns
 * of protected types and of their arrays, in relations with the access method "confide".
 * While a materialized view is refreshed concurrently, they are also in rows of
 * PostgreSQL's temporary table of the differences, which ends with the statement.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_statistic_ext.h"
#include "catalog/pg_type.h"
#include "hooks/hooks.h"
#include "index/derived.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "schema/schema.h"
#include "value/arrays.h"
#include "value/types.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#define HINT_METHOD "Use ALTER TABLE %s SET ACCESS METHOD confide first."

bool		cfd_refreshing = false;

/* Tables that hold rows of the view which is being refreshed. */
static List *refreshed = NIL;

static object_access_hook_type previous_access = NULL;

/*
 * Fetches a catalog row by its OID column and, if `number` is not 0, the
 * number in the following column, or the attribute's number. `index` is an index on these columns.
 * Returns NULL if there is no such row.
 */
static HeapTuple
catalog_row(Oid catalog, Oid index, AttrNumber column, Oid oid, int16 number)
{
	AttrNumber	second = catalog == AttributeRelationId ? Anum_pg_attribute_attnum : column + 1;
	Relation	relation = table_open(catalog, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(oid));
	ScanKeyInit(&keys[1], second, BTEqualStrategyNumber, F_INT2EQ, Int16GetDatum(number));
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
			 errdetail("Protected values cannot be stored inside composites, ranges and arrays of domains."),
			 errhint("Give each protected value a column of its own, or take an array of a protected type.")));
}

/* What an array of protected values cannot be in. */
static void
refuse_array(const char *what, const char *name, Oid type)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("%s \"%s\" cannot hold type %s", what, name, format_type_be(type)),
			 errdetail("Arrays of protected values are stored in tables only, without indexes and statistics, and not in ledger tables."),
			 errhint("Put the elements into rows of a table of their own.")));
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

typedef void (*AttributeCheck) (const Target *target, const Form_pg_attribute attribute);

/* Calls a check for one attribute of a relation, or for all of them (number 0). */
static void
check_attributes(const Target *target, AttrNumber number, AttributeCheck check)
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

		if (attribute->attnum > 0 && !attribute->attisdropped)
			check(target, attribute);
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
}

/* For a ledger table: the log would have the identifiers in place of the elements. */
static void
check_no_array(const Target *target, const Form_pg_attribute attribute)
{
	if (cfd_array_code(attribute->atttypid) != 0)
		refuse_array("ledger table", target->name, attribute->atttypid);
}

static void
check_no_ledger(const Target *target, const Form_pg_attribute attribute)
{
	if (cfd_ledger_role(attribute->atttypid) != CFD_NO_LEDGER)
		check_attributes(target, 0, check_no_array);
}

/*
 * REFRESH MATERIALIZED VIEW CONCURRENTLY collects the rows that differ in a
 * temporary table, as rows of another one, which holds them until both are
 * dropped at its end.
 */
static bool
holds_refreshed_rows(const Target *target, const Form_pg_attribute attribute)
{
	Oid			rows = cfd_refreshing ? get_typ_typrelid(attribute->atttypid) : InvalidOid;
	MemoryContext before;

	/* A table that is just being created is not visible, and none of these. */
	if (!OidIsValid(rows) || !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(target->oid)) ||
		get_rel_persistence(target->oid) != RELPERSISTENCE_TEMP ||
		get_rel_persistence(rows) != RELPERSISTENCE_TEMP)
		return false;
	before = MemoryContextSwitchTo(TopTransactionContext);
	refreshed = lappend_oid(refreshed, target->oid);
	MemoryContextSwitchTo(before);
	return true;
}

void
cfd_refresh_begin(void)
{
	refreshed = NIL;
	cfd_refreshing = true;
}

void
cfd_refresh_check(void)
{
	ListCell   *cell;

	foreach(cell, refreshed)
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(lfirst_oid(cell))))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("table \"%s\" cannot keep rows with protected values", get_rel_name(lfirst_oid(cell))),
					 errdetail("Such a table may exist during REFRESH MATERIALIZED VIEW CONCURRENTLY only."),
					 errhint("Look for an event trigger that has created it.")));
}

static void
check_attribute(const Target *target, const Form_pg_attribute attribute)
{
	check_no_ledger(target, attribute);
	if (!cfd_type_contains(attribute->atttypid) || holds_refreshed_rows(target, attribute))
		return;
	if (cfd_array_code(attribute->atttypid) != 0)
		check_attributes(target, 0, check_no_ledger);
	if (cfd_stored_code(attribute->atttypid) == 0 ||
		(cfd_array_code(attribute->atttypid) != 0 && attribute->attstorage != TYPSTORAGE_PLAIN))
		refuse_inside(target, attribute);
	if (target->kind == RELKIND_PARTITIONED_TABLE)
		return;					/* has no storage itself */
	if (target->kind == RELKIND_FOREIGN_TABLE || target->method != cfd_access_method())
		refuse_relation(target, attribute);
}

static void
check_key(const Target *target, const Form_pg_attribute attribute)
{
	if (!cfd_type_contains(attribute->atttypid))
		return;
	if (target->method != BTREE_AM_OID && target->method != HASH_AM_OID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" cannot hold protected type %s", target->name,
						format_type_be(attribute->atttypid)),
				 errdetail("Of indexes that hold protected columns, garbage collection can read B-trees only."),
				 errhint("Use btree or hash, or leave the column out of INCLUDE.")));
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

	if (cfd_array_code(type) != 0)
		refuse_array("index", target->name, type);
	/* A hash index stores hashes only. */
	if (!cfd_type_contains(type) || target->method == HASH_AM_OID)
		return;
	if (cfd_type_code(type) == 0)
		refuse_indexed(target, type, "Protected values cannot be stored inside composites and ranges.");
	sources = cfd_derived_sources(table, expression, &number);
	if (sources == NULL && number > 0 && cfd_array_code(get_atttype(table, number)) != 0)
		refuse_array("index", target->name, get_atttype(table, number));
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
	/* Of the table's attributes: that of a hash index is the hash. */
	for (int i = 0; i < form->indnatts; i++)
	{
		Oid			type = get_atttype(form->indrelid, form->indkey.values[i]);

		if (cfd_array_code(type) != 0)
			refuse_array("index", target->name, type);
	}
	check_attributes(target, 0, check_key);
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
			check_attributes(&target, number, check_attribute);
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
check_statistics_columns(const Form_pg_statistic_ext statistics)
{
	for (int i = 0; i < statistics->stxkeys.dim1; i++)
	{
		Oid			type = get_atttype(statistics->stxrelid, statistics->stxkeys.values[i]);

		if (cfd_array_code(type) != 0)
			refuse_array("statistics object", NameStr(statistics->stxname), type);
	}
}

static void
check_statistics(Oid oid)
{
	List	   *expressions = (List *) stored_expression(StatisticExtRelationId, StatisticExtOidIndexId,
														 Anum_pg_statistic_ext_oid,
														 Anum_pg_statistic_ext_stxexprs, oid, 0);
	HeapTuple	tuple = catalog_row(StatisticExtRelationId, StatisticExtOidIndexId, Anum_pg_statistic_ext_oid, oid, 0);
	ListCell   *cell;

	foreach(cell, expressions)
	{
		if (cfd_type_contains(exprType(lfirst(cell))))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("statistics on expressions of protected types are not supported")));
	}
	if (HeapTupleIsValid(tuple))
		check_statistics_columns((Form_pg_statistic_ext) GETSTRUCT(tuple));
}

static void
refuse_stored_array(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("this array of protected values cannot be stored in a definition"),
			 errdetail("Its elements would be values of one session or statement, not constants."),
			 errhint("Write ARRAY[...] with constants of the column's element type, without a length or precision; set the default of a new column after it was added.")));
}

static void
refuse_temporary(Datum value)
{
	int			count;
	const CfdFid *fids = cfd_array_fids(DatumGetArrayTypeP(value), &count);

	for (int i = 0; i < count; i++)
	{
		if (cfd_fid_is_temporary(fids[i]))
			refuse_stored_array();
	}
}

/*
 * Checks that the elements of all arrays in an expression are constants: those
 * that PostgreSQL converts one by one (to a length, a precision) when it folds
 * the expression are values of a statement. Returns false.
 */
static bool
check_arrays(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, check_arrays, context, 0);
	if (IsA(node, Const) && !((Const *) node)->constisnull && cfd_array_code(((Const *) node)->consttype) != 0)
		refuse_temporary(((Const *) node)->constvalue);
	if (IsA(node, ArrayCoerceExpr) && cfd_array_code(((ArrayCoerceExpr *) node)->resulttype) != 0 &&
		!IsA(((ArrayCoerceExpr *) node)->elemexpr, RelabelType) && !contain_var_clause(node))
		refuse_stored_array();
	return expression_tree_walker(node, check_arrays, context);
}

static void
check_stored(Oid catalog, Oid index, AttrNumber oid_column, AttrNumber column, Oid oid, int16 number)
{
	Node	   *node = stored_expression(catalog, index, oid_column, column, oid, number);

	(void) check_arrays(node, NULL);
	cfd_check_expression(node);
}

/* What rows have in a column of arrays that were made before it was added. */
static void
check_missing(const Target *target, const Form_pg_attribute attribute)
{
	HeapTuple	tuple;
	Relation	attributes;
	Datum		value;
	Datum	   *values;
	bool		isnull;
	int			count;

	if (!attribute->atthasmissing || cfd_array_code(attribute->atttypid) == 0)
		return;
	tuple = catalog_row(AttributeRelationId, AttributeRelidNumIndexId, Anum_pg_attribute_attrelid,
						target->oid, attribute->attnum);
	attributes = table_open(AttributeRelationId, AccessShareLock);
	value = heap_getattr(tuple, Anum_pg_attribute_attmissingval, RelationGetDescr(attributes), &isnull);
	table_close(attributes, AccessShareLock);
	if (isnull)
		return;
	deconstruct_array(DatumGetArrayTypeP(value), attribute->atttypid, attribute->attlen, attribute->attbyval,
					  attribute->attalign, &values, NULL, &count);
	for (int i = 0; i < count; i++)
		refuse_temporary(values[i]);
}

void
cfd_check_added(const Node *statement)
{
	const AlterTableStmt *alter = (const AlterTableStmt *) statement;
	bool		adds = false;
	Oid			oid;
	ListCell   *cell;

	if (!IsA(alter, AlterTableStmt) || !OidIsValid(cfd_access_method()))
		return;
	foreach(cell, alter->cmds)
		adds = adds || lfirst_node(AlterTableCmd, cell)->subtype == AT_AddColumn;
	oid = adds ? RangeVarGetRelid(alter->relation, NoLock, true) : InvalidOid;
	if (!OidIsValid(oid))
		return;
	foreach(cell, find_all_inheritors(oid, NoLock, NULL))
	{
		Target		target = {.oid = lfirst_oid(cell)};

		check_attributes(&target, 0, check_missing);
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
			check_stored(AttrDefaultRelationId, AttrDefaultIndexId, Anum_pg_attrdef_adrelid, Anum_pg_attrdef_adbin,
						 object, sub);
			break;
		case ConstraintRelationId:
			check_stored(ConstraintRelationId, ConstraintOidIndexId, Anum_pg_constraint_oid, Anum_pg_constraint_conbin,
						 object, 0);
			break;
		case TypeRelationId:		/* a domain's default */
			check_stored(TypeRelationId, TypeOidIndexId, Anum_pg_type_oid, Anum_pg_type_typdefaultbin, object, 0);
			break;
		case StatisticExtRelationId:
			check_statistics(object);
			break;
		case ProcedureRelationId:
			check_stored(ProcedureRelationId, ProcedureOidIndexId, Anum_pg_proc_oid, Anum_pg_proc_prosqlbody, object, 0);
			break;
		case RewriteRelationId:
			check_stored(RewriteRelationId, RewriteOidIndexId, Anum_pg_rewrite_oid, Anum_pg_rewrite_ev_action, object, 0);
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
