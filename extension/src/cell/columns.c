/*
 * columns.c
 *	  The column that a cell is for; see cell.h.
 *
 * All that PostgreSQL passes to the functions that make a value for a column
 * is the column's type modifier. Each column of a type rnd_... therefore has a
 * number in its modifier. The table confide.rnd_column stores the relation
 * that the number belongs to, and the modifier of the plain type. The column
 * is the one in that relation that has the number, so it may be renamed.
 * hooks/cells.c assigns numbers.
 *
 * Invariant: a number belongs to one column and is never reused.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "cell/cell.h"
#include "commands/sequence.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#define SCHEMA "confide"
#define TABLE "rnd_column"
#define INDEX "rnd_column_pkey"
#define SEQUENCE "rnd_number"
#define NUMBER_MAX (CFD_CELL_NUMBERED - 1)

enum
{
	NUMBER = 1,
	RELATION,
	MODIFIER
};

static HTAB *columns = NULL;
static MemoryContext context = NULL;
static bool stale = true;

static Oid
ours(const char *name)
{
	Oid			found = get_relname_relid(name, get_namespace_oid(SCHEMA, false));

	if (!OidIsValid(found))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"%s.%s\" does not exist", SCHEMA, name),
				 errhint("It belongs to extension confide.")));
	return found;
}

int32
cfd_cell_new_number(Oid relation, int32 modifier)
{
	Datum		values[MODIFIER];
	bool		nulls[MODIFIER] = {false};
	int64		number = nextval_internal(ours(SEQUENCE), false);
	Relation	table;
	HeapTuple	tuple;

	if (number <= 0 || number > NUMBER_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("there are too many columns of the family rnd_")));
	table = table_open(ours(TABLE), RowExclusiveLock);
	values[NUMBER - 1] = Int32GetDatum((int32) number);
	values[RELATION - 1] = ObjectIdGetDatum(relation);
	values[MODIFIER - 1] = Int32GetDatum(modifier);
	tuple = heap_form_tuple(RelationGetDescr(table), values, nulls);
	CatalogTupleInsert(table, tuple);
	heap_freetuple(tuple);
	table_close(table, RowExclusiveLock);
	CommandCounterIncrement();
	return (int32) (CFD_CELL_NUMBERED | (uint32) number);
}

Oid
cfd_cell_relation(int32 typmod, int32 *modifier)
{
	Relation	table = table_open(ours(TABLE), AccessShareLock);
	Oid			relation = InvalidOid;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, NUMBER, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(typmod & NUMBER_MAX));
	scan = systable_beginscan(table, ours(INDEX), true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;

		relation = DatumGetObjectId(heap_getattr(tuple, RELATION, RelationGetDescr(table), &isnull));
		*modifier = DatumGetInt32(heap_getattr(tuple, MODIFIER, RelationGetDescr(table), &isnull));
	}
	systable_endscan(scan);
	table_close(table, AccessShareLock);
	return relation;
}

static void
cell_invalidate_names(Datum arg, int cache, uint32 hash)
{
	stale = true;
}

static void
cell_invalidate_relation(Datum arg, Oid relation)
{
	stale = true;
}

static void
prepare_cache(void)
{
	static bool registered = false;
	HASHCTL		control = {.keysize = sizeof(uint32),.entrysize = sizeof(CfdCellColumn)};

	if (!registered)
	{
		CacheRegisterSyscacheCallback(NAMESPACEOID, cell_invalidate_names, (Datum) 0);
		CacheRegisterRelcacheCallback(cell_invalidate_relation, (Datum) 0);
		registered = true;
	}
	if (!stale && columns != NULL)
		return;
	if (context == NULL)
		context = AllocSetContextCreate(CacheMemoryContext, "confide cells", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(context);
	control.hcxt = context;
	columns = hash_create("confide columns of cells", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	stale = false;
}

int
cfd_cell_natts(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	int			natts = 0;

	if (HeapTupleIsValid(tuple))
	{
		natts = ((Form_pg_class) GETSTRUCT(tuple))->relnatts;
		ReleaseSysCache(tuple);
	}
	return natts;
}

/* Name of the relation's column with this modifier, or NULL; whether its cells have tokens. */
static char *
cell_column_name(Oid relation, int32 typmod, bool *token)
{
	int			natts = cfd_cell_natts(relation);

	for (int number = 1; number <= natts; number++)
	{
		HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relation), Int16GetDatum(number));
		Form_pg_attribute form;
		char	   *name = NULL;

		if (!HeapTupleIsValid(tuple))
			continue;
		form = (Form_pg_attribute) GETSTRUCT(tuple);
		if (!form->attisdropped && form->atttypmod == typmod && cfd_cell_code(form->atttypid) != 0)
		{
			name = pstrdup(NameStr(form->attname));
			*token = cfd_cell_has_token(form->atttypid);
		}
		ReleaseSysCache(tuple);
		if (name != NULL)
			return name;
	}
	return NULL;
}

CfdCellColumn *
cfd_cell_column(int32 typmod)
{
	uint32		number = typmod & NUMBER_MAX;
	CfdCellColumn *column;
	Oid			relation;
	Oid			namespace;
	int32		modifier = -1;
	bool		token = false;
	char	   *names[3];
	int			length = 0;

	prepare_cache();
	column = hash_search(columns, &number, HASH_FIND, NULL);
	if (column != NULL)
		return column;
	relation = cfd_cell_relation(typmod, &modifier);
	namespace = OidIsValid(relation) ? get_rel_namespace(relation) : InvalidOid;
	names[0] = isTempNamespace(namespace) ? "pg_temp" : get_namespace_name(namespace);
	names[1] = get_rel_name(relation);
	names[2] = cell_column_name(relation, typmod, &token);
	for (int i = 0; i < lengthof(names); i++)
	{
		if (names[i] == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("there is no column for a value of the family rnd_"),
					 errdetail("The column with number %u is no more.", number)));
		length += strlen(names[i]) + 1;
	}
	/* The lookups may have invalidated the table; what they found is current. */
	prepare_cache();
	column = hash_search(columns, &number, HASH_ENTER, NULL);
	column->modifier = modifier;
	column->token = token;
	column->known = false;
	column->names = MemoryContextAlloc(context, length);
	column->length = 0;
	for (int i = 0; i < lengthof(names); i++)
	{
		strcpy(column->names + column->length, names[i]);
		column->length += strlen(names[i]) + 1;
	}
	return column;
}
