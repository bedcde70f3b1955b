/*
 * adopt.c
 *	  Adoption of values that clients have sealed for a column; see adopt.h.
 *
 * FIDs are leased for each column of a table, at first few and then more. They
 * belong to one channel and one handshake; those that are not used are free
 * again when either ends.
 *
 * Invariants: as in adopt.h; a FID of a lease is used once, and for a value that was
 * sealed for its column.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "lib/stringinfo.h"
#include "nodes/bitmapset.h"
#include "access/sysattr.h"
#include "session/channel.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "value/adopt.h"
#include "value/adopted.h"
#include "value/delivery.h"
#include "value/sealed.h"

/* Sizes of leases for a column. */
#define LEASE_FIRST 32
/* So many rows are promoted before a keeper that has given no lease is asked again. */
#define REFUSED_ROWS 256
#define RECORD_MAX (1024 * 1024)
/* A redo record of adopted values (crate redo) begins with version and kind. */
#define RECORD_VERSION 3
#define RECORD_KIND 8
/* Where it has the lower bytes of the nonce's counter, and the envelope's type and flags. */
#define COUNTER_OFFSET 4
#define COUNTER_BYTES 6
#define TYPE_OFFSET 2
#define TYPE_BYTES 2

/* FIDs of a column. */
typedef struct Stock
{
	uint32		partition;
	unsigned char name[CFD_ENVELOPE_COLUMN_BYTES];
	int			used;
	int			count;
	CfdFid	   *fids;			/* NULL: none have been leased yet */
	int			wanted;			/* how many the row needs */
	bool		asked;			/* the lease has some of them */
} Stock;

/* FIDs of a table. */
typedef struct Stocks
{
	Oid			relation;		/* hash key */
	uint32		generation;		/* of the channel */
	uint32		clients;		/* number of the handshake */
	int			size;			/* of the next lease */
	int			refused;		/* rows until the keeper is asked again */
	int			columns;
	Stock	   *column;			/* in the order of CfdColumns */
} Stocks;

static bool cfd_adopting = true;
static HTAB *tables = NULL;
/* Generation of the channel on which the transaction has adopted values; 0: it has not. */
static uint32 adopted_on = 0;

static void
drop_stock(Stocks *stocks)
{
	for (int n = 0; n < stocks->columns; n++)
	{
		if (stocks->column[n].fids != NULL)
			pfree(stocks->column[n].fids);
	}
	if (stocks->column != NULL)
		pfree(stocks->column);
	stocks->column = NULL;
	stocks->columns = 0;
}

static bool
stocks_are_current(const Stocks *stocks, const CfdColumns *columns)
{
	if (stocks->generation != cfd_channel.generation || stocks->clients != cfd_channel.clients ||
		stocks->columns != columns->count)
		return false;
	for (int n = 0; n < columns->count; n++)
	{
		if (stocks->column[n].partition != columns->column[n].partition)
			return false;
	}
	return true;
}

/* What has been leased for a table on this channel, to this client. */
static Stocks *
stocks_of(Relation relation, const CfdColumns *columns)
{
	Oid			oid = RelationGetRelid(relation);
	Stocks	   *stocks;
	bool		found;

	if (tables == NULL)
	{
		HASHCTL		control = {.keysize = sizeof(Oid),.entrysize = sizeof(Stocks),.hcxt = TopMemoryContext};

		tables = hash_create("confide leases", 32, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	stocks = hash_search(tables, &oid, HASH_ENTER, &found);
	if (!found)
		memset((char *) stocks + sizeof(Oid), 0, sizeof(Stocks) - sizeof(Oid));
	if (found && stocks_are_current(stocks, columns))
		return stocks;
	drop_stock(stocks);
	stocks->column = MemoryContextAllocZero(TopMemoryContext, columns->count * sizeof(Stock));
	stocks->columns = columns->count;
	for (int n = 0; n < columns->count; n++)
		stocks->column[n].partition = columns->column[n].partition;
	stocks->generation = cfd_channel.generation;
	stocks->clients = cfd_channel.clients;
	stocks->size = LEASE_FIRST;
	stocks->refused = 0;
	return stocks;
}

static int
stocks_column(const CfdColumns *columns, uint32 partition)
{
	int			n = 0;

	while (n < columns->count && columns->column[n].partition != partition)
		n++;
	return n;
}

/* Whether all values were sealed for columns like theirs, of which no index has any. */
static bool
all_fit(Relation relation, const CfdColumns *columns, const Bitmapset *keys, const CfdPromotion *items, int count)
{
	bool		fit = columns->ledger.role != CFD_LEDGER_HISTORY;

	for (int i = 0; i < count && fit; i++)
	{
		int			n = stocks_column(columns, items[i].partition);
		CfdSealed	sealed;

		fit = n < columns->count && cfd_sealed_find(items[i].fid, &sealed) &&
			cfd_sealed_type(&sealed) == columns->column[n].type &&
			cfd_sealed_typmod(&sealed) == TupleDescAttr(RelationGetDescr(relation), columns->column[n].index)->atttypmod;
		if (fit)
			fit = !bms_is_member(columns->column[n].index + 1 - FirstLowInvalidHeapAttributeNumber, keys);
	}
	return fit;
}

/* Sets how many FIDs of each column are needed. */
static void
stocks_want(Stocks *stocks, const CfdColumns *columns, const CfdPromotion *items, int count)
{
	for (int n = 0; n < stocks->columns; n++)
		stocks->column[n].wanted = 0;
	for (int i = 0; i < count; i++)
		stocks->column[stocks_column(columns, items[i].partition)].wanted++;
}

static bool
is_short(const Stock *stock)
{
	return stock->count - stock->used < stock->wanted;
}

/* Takes the FIDs and names of a lease, which are in the order of the columns that were asked for. */
static void
take_lease(Stocks *stocks, const CfdReadLeaseAnswer *read, int size)
{
	uint64		run = 0;
	uint64		asked = 0;

	for (int n = 0; n < stocks->columns; n++)
	{
		Stock	   *stock = &stocks->column[n];
		CfdFid	   *fids;
		int			left = stock->count - stock->used;
		int			count = left;

		if (!stock->asked)
			continue;
		fids = MemoryContextAlloc(TopMemoryContext, (left + size) * sizeof(CfdFid));
		if (left > 0)
			memcpy(fids, stock->fids + stock->used, left * sizeof(CfdFid));
		if (stock->fids != NULL)
			pfree(stock->fids);
		stock->fids = fids;
		for (; run < read->runs_count && cfd_fid_partition(read->runs[run].first) == stock->partition; run++)
		{
			for (uint32 at = 0; at < read->runs[run].length && count < left + size; at++)
				fids[count++] = read->runs[run].first + at;
		}
		stock->used = 0;
		stock->count = count;
		if (count != left + size || cfd_fid_partition(fids[count - 1]) != stock->partition)
			cfd_violation("a lease of other identifiers");
		memcpy(stock->name, &read->names[asked++], sizeof(stock->name));
	}
	if (run != read->runs_count)
		cfd_violation("a lease of other identifiers");
}

/*
 * Chooses the columns to lease FIDs of: if one has too few, all that will soon
 * have, so that they do not ask one after the other. A column that was not
 * written yet is none of them: the client may not be permitted to write it, and
 * then nothing is leased. Returns whether any has too few.
 */
static bool
stocks_choose(Stocks *stocks)
{
	bool		any = false;

	for (int n = 0; n < stocks->columns; n++)
	{
		Stock	   *stock = &stocks->column[n];

		any |= is_short(stock);
		stock->asked = (stock->fids != NULL || stock->wanted > 0) &&
			stock->count - stock->used < Max(stock->wanted, stocks->size / 2);
	}
	return any;
}

/* Leases FIDs if a column has too few. Returns whether each has enough. */
static bool
stocks_lease(Relation relation, Stocks *stocks)
{
	uint32		partitions[CFD_LEASE_COLUMNS_MAX];
	CfdWireLease body = {0};
	CfdReadLeaseAnswer read;
	const char *answer;
	uint32		length;
	int			size = stocks->size;

	if (!stocks_choose(stocks))
		return true;
	for (int n = 0; n < stocks->columns; n++)
	{
		const Stock *stock = &stocks->column[n];

		if (!stock->asked)
			continue;
		if (body.columns == CFD_LEASE_COLUMNS_MAX || stock->wanted > CFD_LEASE_MAX)
			return false;
		partitions[body.columns++] = stock->partition;
		size = Max(size, stock->wanted);
	}
	body.count = size;
	answer = cfd_call(CFD_KIND_LEASE, &body, sizeof(body), partitions, body.columns * sizeof(uint32), &length);
	CFD_DECODE(lease_answer, answer, length, &read);
	if (read.runs_count == 0)
	{
		stocks->refused = REFUSED_ROWS;
		return false;
	}
	if (read.names_count != body.columns || stocks->generation != cfd_channel.generation)
		cfd_violation("a lease of other columns");
	cfd_log_promotion(relation, (const char *) read.record, read.record_length);
	take_lease(stocks, &read, size);
	stocks->size = Min(size * 2, CFD_LEASE_MAX);
	return true;
}

/* Whether each value was sealed for the column that it will be stored in, and all fit into a record. */
static bool
is_for_columns(const Stocks *stocks, const CfdColumns *columns, const CfdPromotion *items, int count)
{
	Size		bytes = 0;
	bool		fit = true;

	for (int i = 0; i < count && fit; i++)
	{
		const Stock *stock = &stocks->column[stocks_column(columns, items[i].partition)];
		CfdSealed	sealed;

		fit = cfd_sealed_find(items[i].fid, &sealed) &&
			memcmp(sealed.envelope + CFD_SEALED_COLUMN, stock->name, sizeof(stock->name)) == 0;
		bytes += fit ? sealed.length : 0;
	}
	return fit && bytes <= RECORD_MAX;
}

/* A column may have been renamed since its FIDs were leased: later, others are leased. */
static void
lay_down(Stocks *stocks)
{
	for (int n = 0; n < stocks->columns; n++)
		stocks->column[n].used = stocks->column[n].count;
	stocks->refused = REFUSED_ROWS;
}

/* Gives a value the next FID of its column, and appends both to a record. */
static void
adopt_put(StringInfo record, Stock *stock, CfdPromotion *item, uint64 period)
{
	CfdSealed	sealed;
	uint32		length;

	if (!cfd_sealed_find(item->fid, &sealed))
		elog(ERROR, "envelope of a value is lost");
	item->fid = stock->fids[stock->used++];
	length = sealed.length - CFD_SEALED_CIPHERTEXT;
	appendBinaryStringInfo(record, (char *) &item->fid, sizeof(item->fid));
	appendBinaryStringInfo(record, (const char *) sealed.envelope + CFD_SEALED_TYPMOD, sizeof(int32));
	appendBinaryStringInfo(record, (const char *) sealed.envelope + CFD_SEALED_NONCE + COUNTER_OFFSET, COUNTER_BYTES);
	appendBinaryStringInfo(record, (const char *) sealed.envelope + TYPE_OFFSET, TYPE_BYTES);
	appendBinaryStringInfo(record, (char *) &length, sizeof(length));
	appendBinaryStringInfo(record, (const char *) sealed.envelope + CFD_SEALED_CIPHERTEXT, length);
	cfd_adopted_note(period, item->fid, &sealed);
}

/* Sends the record to the keeper and writes it to the WAL. Its errors are told before the commit. */
static void
adopt_announce(Relation relation, const StringInfoData *record)
{
	bool		outstanding = cfd_channel.outstanding;

	adopted_on = cfd_channel.generation;
	cfd_send(CFD_KIND_ADOPT, NULL, 0, record->data, record->len);
	cfd_channel.outstanding = outstanding;
	/* A new channel has not leased these FIDs. */
	if (adopted_on != cfd_channel.generation)
		cfd_violation("a channel ended while a row was written");
	cfd_log_promotion(relation, record->data, record->len);
}

static void
adopt_row(Relation relation, Stocks *stocks, const CfdColumns *columns, CfdPromotion *items, int count)
{
	uint64		period = cfd_delivery_period();
	StringInfoData record;

	initStringInfo(&record);
	appendStringInfoChar(&record, RECORD_VERSION);
	appendStringInfoChar(&record, RECORD_KIND);
	for (int i = 0; i < count; i++)
		adopt_put(&record, &stocks->column[stocks_column(columns, items[i].partition)], &items[i], period);
	adopt_announce(relation, &record);
	pfree(record.data);
	cfd_after_operation();
}

/* The FIDs of a table, enough for the values; NULL if they are not leased. */
static Stocks *
stocks_for(Relation relation, const CfdPromotion *items, int count)
{
	const CfdColumns *columns = cfd_open_columns(relation);
	Stocks	   *stocks = stocks_of(relation, columns);

	if (stocks->refused > 0)
	{
		stocks->refused--;
		return NULL;
	}
	stocks_want(stocks, columns, items, count);
	if (!stocks_lease(relation, stocks))
		return NULL;
	/* The columns may have been freed meanwhile; they are the same. */
	columns = cfd_open_columns(relation);
	return stocks_are_current(stocks, columns) ? stocks : NULL;
}

bool
cfd_lease(Relation relation, CfdPromotion *items, int count)
{
	const CfdColumns *columns;
	Stocks	   *stocks;

	if (!cfd_adopting || count == 0 || cfd_channel.watched != 0)
		return false;
	cfd_state_need_fids();
	stocks = stocks_for(relation, items, count);
	if (stocks == NULL)
		return false;
	columns = cfd_open_columns(relation);
	for (int i = 0; i < count; i++)
	{
		Stock	   *stock = &stocks->column[stocks_column(columns, items[i].partition)];

		items[i].fid = stock->fids[stock->used++];
	}
	return true;
}

bool
cfd_adopt(Relation relation, CfdPromotion *items, int count)
{
	Bitmapset  *keys = NULL;
	const CfdColumns *columns;
	Stocks	   *stocks;
	CfdSealed	first;
	bool		fit;

	if (!cfd_adopting || count == 0 || cfd_channel.watched != 0 || !cfd_sealed_find(items[0].fid, &first))
		return false;
	/* Reading the indexes may free the columns. */
	if (relation->rd_rel->relhasindex)
		keys = RelationGetIndexAttrBitmap(relation, CFD_INDEX_ATTR_HOT);
	cfd_state_need_fids();
	columns = cfd_open_columns(relation);
	fit = all_fit(relation, columns, keys, items, count);
	bms_free(keys);
	if (!fit)
		return false;
	stocks = stocks_for(relation, items, count);
	if (stocks == NULL)
		return false;
	columns = cfd_open_columns(relation);
	if (!is_for_columns(stocks, columns, items, count))
	{
		lay_down(stocks);
		return false;
	}
	adopt_row(relation, stocks, columns, items, count);
	return true;
}

bool
cfd_adopt_unconfirmed(void)
{
	return adopted_on != 0;
}

void
cfd_adopt_ended(void)
{
	adopted_on = 0;
	cfd_adopted_forget();
}

bool
cfd_adopt_confirmable(void)
{
	return adopted_on != 0 && cfd_channel.connected && adopted_on == cfd_channel.generation;
}

void
cfd_adopt_confirmed(void)
{
	cfd_channel.deferred = cfd_channel.unasked = false;
	cfd_adopt_ended();
}

void
cfd_adopt_before_commit(void)
{
	uint32		on = adopted_on;

	if (on == 0)
		return;
	if (cfd_adopt_confirmable())
		cfd_adopted_confirm();
	/* Another channel knows nothing of them. */
	if (!cfd_channel.connected || on != cfd_channel.generation)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("Confide's keeper has not confirmed values that this transaction has written"),
				 errdetail("The connection to the keeper ended before it had."),
				 errhint("The transaction had no effect; try again.")));
	cfd_adopt_confirmed();
}

void
cfd_adopt_init(void)
{
	DefineCustomBoolVariable("confide.adopt",
							 "Values that clients have fitted to their columns are stored without waiting for the keeper.",
							 NULL, &cfd_adopting, true, PGC_USERSET, 0, NULL, NULL, NULL);
}
