/*
 * described.c
 *	  What the keeper is told of tables and their columns; see ledger.h.
 *
 * To make the texts takes many looks into catalogs, so those of the last relations are kept, here and
 * in the keeper, each in a place.
 *
 * Invariant: what is given is as the catalogs have it, and what is made anew has not been told.
 * While it is being used, nothing frees it: an invalidation only says that it has to be made anew.
 */
#include "postgres.h"

#include "ledger/ledger.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "value/types.h"

typedef struct Place
{
	Oid			relation;		/* InvalidOid: none, or to be made anew */
	Oid			table;			/* whose history it is, or itself */
	MemoryContext context;
	CfdDescribed *described;	/* NULL: being made */
} Place;

static Place places[CFD_LEDGER_PLACES];

/* So many places, from its own on, may have a relation. */
#define WAYS 4

static void
described_relation_changed(Datum argument, Oid relation)
{
	for (int i = 0; i < CFD_LEDGER_PLACES; i++)
	{
		if (!OidIsValid(relation) || places[i].relation == relation || places[i].table == relation)
			places[i].relation = InvalidOid;
	}
}

/* A type or a schema may have another name. */
static void
described_names_changed(Datum argument, int cache, uint32 hash)
{
	described_relation_changed(argument, InvalidOid);
}

static bool
is_own(const CfdLedgerPlaces *at, int index)
{
	if (index == at->sn || index == at->valid_from || index == at->by)
		return true;
	return at->role == CFD_LEDGER_HISTORY && (index == at->valid_to || index == at->ended_by);
}

/* Appends a column. Returns its type's code. */
static uint8
describe_column(StringInfo text, Form_pg_attribute attribute)
{
	CfdWireLedgerColumn column = {.t = cfd_type_code(attribute->atttypid)};

	appendBinaryStringInfo(text, (char *) &column, sizeof(column));
	cfd_ledger_append_text(text, NameStr(attribute->attname));
	/* Independent of search_path. */
	cfd_ledger_append_text(text, format_type_extended(attribute->atttypid, attribute->atttypmod,
													  FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY));
	return column.t;
}

static CfdDescribed *
make_description(Relation table, Relation relation)
{
	TupleDesc	desc = RelationGetDescr(relation);
	CfdLedgerPlaces at = cfd_columns(relation)->ledger;
	CfdDescribed *described = palloc0(offsetof(CfdDescribed, column) + desc->natts * sizeof(CfdDescribedColumn));
	StringInfoData text;
	int16		told = 0;

	initStringInfo(&text);
	cfd_ledger_append_text(&text, get_namespace_name(RelationGetNamespace(table)));
	cfd_ledger_append_text(&text, RelationGetRelationName(table));
	described->names_length = text.len;
	for (int i = 0; i < desc->natts; i++)
	{
		described->column[i].position = -1;
		if (TupleDescAttr(desc, i)->attisdropped || is_own(&at, i))
			continue;
		described->column[i].position = told++;
		described->column[i].code = describe_column(&text, TupleDescAttr(desc, i));
	}
	described->text = text.data;
	described->length = text.len;
	return described;
}

/* The place that has the relation; else a free one; else its own. */
static uint32
place_for(Oid relation)
{
	uint32		own = relation % CFD_LEDGER_PLACES;
	uint32		result = own;

	for (int way = WAYS - 1; way >= 0; way--)
	{
		uint32		number = (own + way) % CFD_LEDGER_PLACES;

		if (places[number].relation == relation)
			return number;
		if (!OidIsValid(places[number].relation))
			result = number;
	}
	return result;
}

CfdDescribed *
cfd_ledger_describe(Relation table, Relation relation)
{
	static bool watching = false;
	Oid			oid = RelationGetRelid(relation);
	uint32		number = place_for(oid);
	Place	   *place = &places[number];
	MemoryContext old;

	if (place->relation == oid && place->described != NULL)
		return place->described;
	if (!watching)
	{
		CacheRegisterRelcacheCallback(described_relation_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(TYPEOID, described_names_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(NAMESPACEOID, described_names_changed, (Datum) 0);
		watching = true;
	}
	if (place->context == NULL)
		place->context = AllocSetContextCreate(TopMemoryContext, "confide ledger description", ALLOCSET_SMALL_SIZES);
	place->described = NULL;
	MemoryContextReset(place->context);
	/* What changes meanwhile makes it be made anew the next time. */
	place->relation = oid;
	place->table = RelationGetRelid(table);
	old = MemoryContextSwitchTo(place->context);
	place->described = make_description(table, relation);
	place->described->place = number;
	MemoryContextSwitchTo(old);
	return place->described;
}
