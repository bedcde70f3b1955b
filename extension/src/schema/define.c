/*
 * define.c
 *	  Definitions of schemas, types, relations and functions as records;
 *	  see schema.h and crates/contract/src/report.rs.
 *
 * Reads the catalogs directly, since the caches may not yet reflect what
 * another session has just committed. The client works out what a definition
 * means, such as which types contain a protected one.
 *
 * Invariant: a record contains all fields of an object, so the last record of
 * an object is authoritative.
 */
#include "postgres.h"

#include "cell/cell.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/namespace.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_language.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_range.h"
#include "catalog/pg_type.h"
#include "generated/contract.h"
#include "mb/pg_wchar.h"
#include "schema/schema.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Longer texts are sent in parts. */
#define PART_MAX (256 * 1024)

static Oid	information_schema = InvalidOid;

void
cfd_schema_field(StringInfo out, const char *text)
{
	char	   *utf8 = pg_server_to_any(text, strlen(text), PG_UTF8);

	appendStringInfo(out, "%zu:%s", strlen(utf8), utf8);
	if (utf8 != text)
		pfree(utf8);
}

void
cfd_schema_number(StringInfo out, uint64 number)
{
	char		digits[32];

	snprintf(digits, sizeof(digits), UINT64_FORMAT, number);
	appendStringInfo(out, "%zu:%s", strlen(digits), digits);
}

static void
put_char(StringInfo out, char c)
{
	appendStringInfo(out, "1:%c", c);
}

static void
put_signed(StringInfo out, int number)
{
	char		digits[16];

	snprintf(digits, sizeof(digits), "%d", number);
	appendStringInfo(out, "%zu:%s", strlen(digits), digits);
}

static bool
of_system(Oid namespace)
{
	return namespace == PG_CATALOG_NAMESPACE || namespace == information_schema;
}

static void
define_namespace(StringInfo out, HeapTuple tuple)
{
	Form_pg_namespace form = (Form_pg_namespace) GETSTRUCT(tuple);

	put_char(out, CFD_REPORT_NAMESPACE);
	cfd_schema_number(out, form->oid);
	cfd_schema_field(out, NameStr(form->nspname));
}

/* Fetches the row of a catalog with the given OID. */
static HeapTuple
one_row(Oid catalog, Oid index, AttrNumber key, Oid value)
{
	Relation	relation = table_open(catalog, AccessShareLock);
	ScanKeyData scan_key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&scan_key, key, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(value));
	scan = systable_beginscan(relation, index, true, NULL, 1, &scan_key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	return tuple;
}

/* The type that a type is built from, if any. Rows are described by their columns. */
static Oid
define_part(Form_pg_type form)
{
	HeapTuple	tuple = NULL;
	Oid			part = InvalidOid;

	switch (form->typtype)
	{
		case TYPTYPE_DOMAIN:
			return form->typbasetype;
		case TYPTYPE_RANGE:
			tuple = one_row(RangeRelationId, RangeTypidIndexId, Anum_pg_range_rngtypid, form->oid);
			break;
		case TYPTYPE_MULTIRANGE:
			tuple = one_row(RangeRelationId, RangeMultirangeTypidIndexId, Anum_pg_range_rngmultitypid, form->oid);
			break;
		default:
			return form->typcategory == TYPCATEGORY_ARRAY ? form->typelem : InvalidOid;
	}
	if (HeapTupleIsValid(tuple))
	{
		part = ((Form_pg_range) GETSTRUCT(tuple))->rngsubtype;
		heap_freetuple(tuple);
	}
	return part;
}

static void
define_type(StringInfo out, HeapTuple tuple)
{
	Form_pg_type form = (Form_pg_type) GETSTRUCT(tuple);

	if (form->typtype == TYPTYPE_PSEUDO && form->oid < FirstNormalObjectId)
		return;
	put_char(out, CFD_REPORT_TYPE);
	cfd_schema_number(out, form->oid);
	cfd_schema_number(out, form->typnamespace);
	cfd_schema_field(out, NameStr(form->typname));
	cfd_schema_number(out, form->typrelid);
	cfd_schema_number(out, define_part(form));
	cfd_schema_number(out, form->typtype == TYPTYPE_DOMAIN);
}

static bool
of_interest(Form_pg_class form)
{
	switch (form->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_VIEW:
		case RELKIND_MATVIEW:
		case RELKIND_FOREIGN_TABLE:
		case RELKIND_PARTITIONED_TABLE:
		case RELKIND_SEQUENCE:
		case RELKIND_COMPOSITE_TYPE:
			return form->relnamespace != PG_TOAST_NAMESPACE;
		default:
			return false;
	}
}

/* The modifier of a column's type in terms of the plain type. */
static int32
plain_modifier(Form_pg_attribute form)
{
	int32		modifier = form->atttypmod;

	if (cfd_cell_numbered(modifier) && cfd_cell_code(form->atttypid) != 0)
		(void) cfd_cell_relation(modifier, &modifier);
	return modifier;
}

static void
define_columns(StringInfo out, Oid oid)
{
	Relation	relation = table_open(AttributeRelationId, AccessShareLock);
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key[0], Anum_pg_attribute_attrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(oid));
	ScanKeyInit(&key[1], Anum_pg_attribute_attnum, BTGreaterStrategyNumber, F_INT2GT, Int16GetDatum(0));
	scan = systable_beginscan(relation, AttributeRelidNumIndexId, true, NULL, 2, key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_attribute form = (Form_pg_attribute) GETSTRUCT(tuple);

		if (form->attisdropped)
			continue;
		put_char(out, CFD_REPORT_COLUMN);
		cfd_schema_number(out, form->attnum);
		cfd_schema_field(out, NameStr(form->attname));
		cfd_schema_number(out, form->atttypid);
		put_signed(out, plain_modifier(form));
		cfd_schema_number(out, form->attgenerated != '\0');
		cfd_schema_number(out, form->attidentity != '\0');
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
}

static void
define_relation(StringInfo out, HeapTuple tuple)
{
	Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

	if (!of_interest(form))
		return;
	put_char(out, CFD_REPORT_RELATION);
	cfd_schema_number(out, form->oid);
	cfd_schema_number(out, form->relnamespace);
	cfd_schema_field(out, NameStr(form->relname));
	put_char(out, form->relkind);
	cfd_schema_number(out, form->reltype);
	if (!of_system(form->relnamespace) && form->relkind != RELKIND_SEQUENCE)
		define_columns(out, form->oid);
	put_char(out, CFD_REPORT_END);
}

static void
put_oids(StringInfo out, const Oid *oids, int count)
{
	cfd_schema_number(out, count);
	for (int i = 0; i < count; i++)
		cfd_schema_number(out, oids[i]);
}

static void
put_all_types(StringInfo out, Datum datum, bool isnull)
{
	ArrayType  *array = isnull ? NULL : DatumGetArrayTypeP(datum);

	put_oids(out, isnull ? NULL : (Oid *) ARR_DATA_PTR(array), isnull ? 0 : ARR_DIMS(array)[0]);
}

static void
put_modes(StringInfo out, Datum datum, bool isnull)
{
	ArrayType  *array = isnull ? NULL : DatumGetArrayTypeP(datum);

	if (isnull)
		appendStringInfoString(out, "0:");
	else
		appendStringInfo(out, "%d:%.*s", ARR_DIMS(array)[0], ARR_DIMS(array)[0], ARR_DATA_PTR(array));
}

static void
put_names(StringInfo out, Datum datum, bool isnull)
{
	Datum	   *names;
	int			count = 0;

	if (!isnull)
		deconstruct_array(DatumGetArrayTypeP(datum), TEXTOID, -1, false, TYPALIGN_INT, &names, NULL, &count);
	cfd_schema_number(out, count);
	for (int i = 0; i < count; i++)
		cfd_schema_field(out, TextDatumGetCString(names[i]));
}

/*
 * Appends the body of a function in an interpreted language. The client works
 * out what it does with its arguments.
 */
static void
put_body(StringInfo out, Form_pg_proc form, Datum source)
{
	bool		read = form->prolang != INTERNALlanguageId && form->prolang != ClanguageId;
	char	   *language = read ? get_language_name(form->prolang, true) : NULL;

	cfd_schema_field(out, language == NULL ? "" : language);
	cfd_schema_field(out, language == NULL ? "" : TextDatumGetCString(source));
}

/* A column of a function's row as text, after a line feed; nothing for NULL. */
static void
put_column(StringInfo all, HeapTuple tuple, TupleDesc description, AttrNumber number)
{
	bool		isnull;
	Datum		datum = heap_getattr(tuple, number, description, &isnull);

	appendStringInfoChar(all, '\n');
	if (isnull)
		return;
	appendStringInfoString(all, number == Anum_pg_proc_proconfig ? OidOutputFunctionCall(F_ARRAY_OUT, datum) :
						   TextDatumGetCString(datum));
}

/*
 * Appends a hash of what a function does besides what the client reads of it.
 * "confide pin" computes the same (crates/cli/src/pin.rs).
 */
static void
put_rest(StringInfo out, HeapTuple tuple, TupleDesc description)
{
	Form_pg_proc form = (Form_pg_proc) GETSTRUCT(tuple);
	const AttrNumber columns[] = {Anum_pg_proc_proconfig, Anum_pg_proc_probin, Anum_pg_proc_prosrc,
		Anum_pg_proc_prosqlbody, Anum_pg_proc_proargdefaults};
	StringInfoData all;
	bytea	   *hash;

	initStringInfo(&all);
	appendStringInfo(&all, "%c%c%c%c%c%c", form->prokind, form->prosecdef ? 't' : 'f', form->proisstrict ? 't' : 'f',
					 form->proretset ? 't' : 'f', form->provolatile, form->proleakproof ? 't' : 'f');
	for (int i = 0; i < lengthof(columns); i++)
		put_column(&all, tuple, description, columns[i]);
	hash = DatumGetByteaPP(DirectFunctionCall1(sha256_bytea, PointerGetDatum(cstring_to_text_with_len(all.data, all.len))));
	appendStringInfo(out, "%d:", (int) (2 * VARSIZE_ANY_EXHDR(hash)));
	for (int i = 0; i < VARSIZE_ANY_EXHDR(hash); i++)
		appendStringInfo(out, "%02x", (unsigned char) VARDATA_ANY(hash)[i]);
	pfree(all.data);
}

static void
define_function(StringInfo out, HeapTuple tuple, TupleDesc description)
{
	Form_pg_proc form = (Form_pg_proc) GETSTRUCT(tuple);
	Datum		datum;
	bool		isnull;

	if (of_system(form->pronamespace))
		return;
	put_char(out, CFD_REPORT_FUNCTION);
	cfd_schema_number(out, form->oid);
	cfd_schema_number(out, form->pronamespace);
	cfd_schema_field(out, NameStr(form->proname));
	put_oids(out, form->proargtypes.values, form->proargtypes.dim1);
	cfd_schema_number(out, form->prorettype);
	datum = heap_getattr(tuple, Anum_pg_proc_proallargtypes, description, &isnull);
	put_all_types(out, datum, isnull);
	datum = heap_getattr(tuple, Anum_pg_proc_proargmodes, description, &isnull);
	put_modes(out, datum, isnull);
	datum = heap_getattr(tuple, Anum_pg_proc_proargnames, description, &isnull);
	put_names(out, datum, isnull);
	cfd_schema_number(out, form->provariadic);
	cfd_schema_number(out, form->pronargdefaults);
	put_body(out, form, heap_getattr(tuple, Anum_pg_proc_prosrc, description, &isnull));
	put_rest(out, tuple, description);
}

static void
define_tuple(StringInfo out, Oid class, HeapTuple tuple, TupleDesc description)
{
	switch (class)
	{
		case NamespaceRelationId:
			define_namespace(out, tuple);
			break;
		case TypeRelationId:
			define_type(out, tuple);
			break;
		case RelationRelationId:
			define_relation(out, tuple);
			break;
		case ProcedureRelationId:
			define_function(out, tuple, description);
			break;
	}
}

static Oid
index_of(Oid class)
{
	switch (class)
	{
		case NamespaceRelationId:
			return NamespaceOidIndexId;
		case TypeRelationId:
			return TypeOidIndexId;
		case RelationRelationId:
			return ClassOidIndexId;
		default:
			return ProcedureOidIndexId;
	}
}

/* Appends one object of a catalog, or all of them. */
static bool
define_of(StringInfo out, Oid class, Oid object, void (*full) (StringInfo out))
{
	Relation	relation = table_open(class, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;

	/* In each of the four catalogs the OID is the first column. */
	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(object));
	scan = OidIsValid(object) ? systable_beginscan(relation, index_of(class), true, NULL, 1, &key) :
		systable_beginscan(relation, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		found = true;
		define_tuple(out, class, tuple, RelationGetDescr(relation));
		if (full != NULL && out->len > PART_MAX)
			full(out);
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	return found;
}

static void
find_information_schema(void)
{
	if (!OidIsValid(information_schema))
		information_schema = get_namespace_oid("information_schema", true);
}

bool
cfd_schema_define(StringInfo out, const CfdObject *object)
{
	find_information_schema();
	return define_of(out, object->class, object->object, NULL);
}

void
cfd_schema_define_gone(StringInfo out, const CfdObject *object)
{
	put_char(out, CFD_REPORT_GONE);
	cfd_schema_number(out, object->class);
	cfd_schema_number(out, object->object);
}

void
cfd_schema_define_all(StringInfo out, void (*full) (StringInfo out))
{
	const Oid	classes[] = {NamespaceRelationId, TypeRelationId, RelationRelationId, ProcedureRelationId};

	find_information_schema();
	for (int i = 0; i < lengthof(classes); i++)
		define_of(out, classes[i], InvalidOid, full);
}
