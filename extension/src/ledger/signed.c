/*
 * signed.c
 *	  confide.signed_result: returns a query's result with the keeper's
 *	  signature, as a protected text that only the client can read
 *	  (crates/ledger, docs/ledger.md).
 *
 * Runs the query, and sends the columns and cells of its result to the keeper,
 * which signs them; nothing here waits for that. The proxy generates the call for SELECT ... WITH
 * SIGNATURE. For rows of ledger tables (found in the query by hooks/shown.c),
 * the keeper is first sent the whole row version.
 *
 * Invariant: protected values are sent as FIDs, never as text; names and plain
 * values from this backend are signed as its statement, not as the keeper's.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "ledger/ledger.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "session/channel.h"
#include "tcop/pquery.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "value/types.h"

/* Number of rows fetched and sent at a time. */
#define ROWS 256
/* Prefix of a protected type's name; the name of the plain type follows. */
#define PROTECTED_PREFIX "enc_"

CfdSignedSources *cfd_signed_sources = NULL;

static void
signed_append_text(StringInfo body, const char *text)
{
	char	   *utf8 = pg_server_to_any(text, strlen(text), PG_UTF8);

	appendBinaryStringInfo(body, utf8, strlen(utf8) + 1);
}

/* Appends the type as users know it: a protected type by the name of its plain type. */
static void
signed_append_type(StringInfo body, Form_pg_attribute attribute)
{
	char	   *name = format_type_with_typemod(attribute->atttypid, attribute->atttypmod);
	size_t		prefix = sizeof(PROTECTED_PREFIX) - 1;

	if (cfd_type_code(attribute->atttypid) != 0 && strncmp(name, PROTECTED_PREFIX, prefix) == 0)
		name += prefix;
	signed_append_text(body, name);
}

/*
 * Schema, table and column that a target shows; three empty strings for an
 * expression.
 */
static void
signed_append_origin(StringInfo body, TargetEntry *target)
{
	Oid			table = target == NULL ? InvalidOid : target->resorigtbl;
	char	   *name = OidIsValid(table) ? get_rel_name(table) : NULL;

	signed_append_text(body, name == NULL ? "" : get_namespace_name(get_rel_namespace(table)));
	signed_append_text(body, name == NULL ? "" : name);
	signed_append_text(body, name == NULL ? "" : get_attname(table, target->resorigcol, false));
}

static TargetEntry *
signed_target(List *targets, int column)
{
	ListCell   *cell;

	foreach(cell, targets)
	{
		TargetEntry *target = lfirst_node(TargetEntry, cell);

		if (!target->resjunk && column-- == 0)
			return target;
	}
	return NULL;
}

static void
signed_send_columns(Portal portal, const CfdSignedSources *sources, CfdFid statement, CfdFid nonce)
{
	CfdWireResultBegin head = {.statement = statement,.nonce = nonce};
	List	   *targets = FetchPortalTargetList(portal);
	TupleDesc	desc = portal->tupDesc;
	StringInfoData columns;

	initStringInfo(&columns);
	for (int i = 0; i < sources->columns; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		CfdWireResultColumn column = {.t = cfd_type_code(attribute->atttypid),.source = sources->of[i]};

		appendBinaryStringInfo(&columns, (char *) &column, sizeof(column));
		signed_append_text(&columns, NameStr(attribute->attname));
		signed_append_type(&columns, attribute);
		signed_append_origin(&columns, signed_target(targets, i));
	}
	cfd_begin();
	cfd_send(CFD_KIND_RESULT_BEGIN, &head, sizeof(head), columns.data, columns.len);
	pfree(columns.data);
}

/* What the cells of a column need; the same for all rows. */
typedef struct SignedColumn
{
	uint8		t;				/* protected: the type's code; else 0 */
	FmgrInfo	output;			/* not protected: the type's output function */
} SignedColumn;

static SignedColumn *
signed_columns(TupleDesc desc, int count)
{
	SignedColumn *columns = palloc0(sizeof(SignedColumn) * count);

	for (int i = 0; i < count; i++)
	{
		Oid			type = TupleDescAttr(desc, i)->atttypid;
		Oid			function;
		bool		varlena;

		columns[i].t = cfd_type_code(type);
		if (columns[i].t != 0)
			continue;
		getTypeOutputInfo(type, &function, &varlena);
		fmgr_info(function, &columns[i].output);
	}
	return columns;
}

static void
signed_append_cell(StringInfo cells, SignedColumn *column, Datum value, bool isnull)
{
	CfdWireResultCell cell = {.null = isnull};
	char	   *text = "";

	if (!isnull && column->t != 0)
		cell.fid = DatumGetUInt64(value);
	else if (!isnull)
	{
		text = OutputFunctionCall(&column->output, value);
		text = pg_server_to_any(text, strlen(text), PG_UTF8);
		cell.length = strlen(text);
	}
	appendBinaryStringInfo(cells, (char *) &cell, sizeof(cell));
	appendBinaryStringInfo(cells, text, cell.length);
}

/* The relation that the last row showed of a source; most results show the same one in all rows. */
typedef struct Shown
{
	Relation	relation;		/* NULL: none yet */
	Relation	table;			/* the ledger table: the relation, or that whose history it is */
	TupleTableSlot *slot;
} Shown;

static void
signed_close(Shown *shown)
{
	if (shown->relation == NULL)
		return;
	ExecDropSingleTupleTableSlot(shown->slot);
	relation_close(shown->table, AccessShareLock);
	relation_close(shown->relation, AccessShareLock);
	shown->relation = NULL;
}

static void
signed_open_shown(Shown *shown, Oid oid)
{
	if (shown->relation != NULL && RelationGetRelid(shown->relation) == oid)
		return;
	signed_close(shown);
	shown->relation = relation_open(oid, AccessShareLock);
	shown->table = cfd_ledger_table_of(shown->relation);
	shown->slot = table_slot_create(shown->relation, NULL);
}

/* Sends the row version of a ledger table that a result row shows, as it is stored. */
static void
signed_send_version(Shown *shown, ItemPointer tid, uint64 number)
{
	CfdWireLedgerRow head = {.what = CFD_LEDGER_SHOWN,.number = number};

	if (cfd_columns(shown->relation)->ledger.role != CFD_NO_LEDGER &&
		table_tuple_fetch_row_version(shown->relation, tid, SnapshotAny, shown->slot))
	{
		head.log = cfd_open_log(shown->table);
		cfd_ledger_send(shown->table, shown->relation, shown->slot, &head);
	}
	ExecClearTuple(shown->slot);
}

static void
signed_send_versions(Shown *shown, const Datum *values, const bool *nulls, const CfdSignedSources *sources,
					 uint64 number)
{
	for (int source = 1; source <= sources->count; source++)
	{
		int			table = sources->columns + 2 * (source - 1);
		int			row = table + 1;

		/* NULL if an outer join found no row. */
		if (nulls[table] || nulls[row])
			continue;
		signed_open_shown(&shown[source - 1], DatumGetObjectId(values[table]));
		signed_send_version(&shown[source - 1], (ItemPointer) DatumGetPointer(values[row]),
							number * CFD_LEDGER_SOURCES + source);
	}
}

/*
 * Sends the fetched rows and frees them; `before` is the number of rows sent
 * earlier.
 */
static void
signed_send_rows(const CfdSignedSources *sources, uint64 before)
{
	SPITupleTable *table = SPI_tuptable;
	TupleDesc	desc = table->tupdesc;
	SignedColumn *columns = signed_columns(desc, sources->columns);
	Datum	   *values = palloc(sizeof(Datum) * desc->natts);
	bool	   *nulls = palloc(sizeof(bool) * desc->natts);
	Shown		shown[CFD_SIGNED_SOURCES_MAX] = {0};
	StringInfoData cells;

	initStringInfo(&cells);
	for (uint64 i = 0; i < table->numvals; i++)
	{
		CHECK_FOR_INTERRUPTS();
		heap_deform_tuple(table->vals[i], desc, values, nulls);
		signed_send_versions(shown, values, nulls, sources, before + i);
		for (int column = 0; column < sources->columns; column++)
			signed_append_cell(&cells, &columns[column], values[column], nulls[column]);
	}
	for (int source = 0; source < sources->count; source++)
		signed_close(&shown[source]);
	cfd_begin();
	cfd_send(CFD_KIND_RESULT_ROWS, NULL, 0, cells.data, cells.len);
	pfree(cells.data);
	SPI_freetuptable(table);
}

/* Opens a cursor for the query. `sources` receives what it shows of ledger tables. */
static Portal
signed_open(CfdSignedSources *sources)
{
	Portal		portal;

	cfd_signed_sources = sources;
	PG_TRY();
	{
		portal = SPI_cursor_parse_open(NULL, sources->query, &(SPIParseOpenOptions) {.read_only = true});
	}
	PG_FINALLY();
	{
		cfd_signed_sources = NULL;
	}
	PG_END_TRY();
	if (portal->tupDesc->natts != sources->columns + 2 * sources->count)
		elog(ERROR, "a query that shall be signed has other columns than it was analysed to have");
	return portal;
}

PG_FUNCTION_INFO_V1(cfd_signed_result);
Datum
cfd_signed_result(PG_FUNCTION_ARGS)
{
	CfdSignedSources sources = {.query = text_to_cstring(PG_GETARG_TEXT_PP(0))};
	uint64		rows = 0;
	CfdWireResultSign sign = {0};
	Portal		portal;

	SPI_connect();
	portal = signed_open(&sources);
	signed_send_columns(portal, &sources, DatumGetUInt64(PG_GETARG_DATUM(1)), DatumGetUInt64(PG_GETARG_DATUM(2)));
	for (;;)
	{
		SPI_cursor_fetch(portal, true, ROWS);
		if (SPI_processed == 0)
			break;
		/* Count first: signed_send_rows frees what was fetched. */
		rows += SPI_processed;
		signed_send_rows(&sources, rows - SPI_processed);
	}
	SPI_cursor_close(portal);
	SPI_finish();
	cfd_begin();
	sign.to = cfd_new_slot(CFD_STATEMENT);
	/* Whoever asks for the text waits, and is told if there is none. */
	cfd_send(CFD_KIND_RESULT_SIGN, &sign, sizeof(sign), NULL, 0);
	PG_RETURN_DATUM(UInt64GetDatum(sign.to));
}
