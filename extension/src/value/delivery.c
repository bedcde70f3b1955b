/*
 * delivery.c
 *	  Cache of delivery envelopes; see delivery.h.
 *
 * There are two set-associative tables, for short and for longer envelopes;
 * envelopes that are longer still are not cached. Replacement within a set is
 * an approximation of LRU (clock sweep): a use increments a cell's counter up
 * to a small maximum, and the search for a victim decrements counters.
 *
 * The contents of shared memory are trusted only to the extent of the cell's
 * size. The client verifies the envelope itself.
 *
 * Invariants: as in delivery.h; a set is accessed under its spinlock only, by
 * code that cannot raise an error.
 */
#include "postgres.h"

#include "value/delivery.h"
#include "miscadmin.h"
#include "session/channel.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#define WAYS 8
#define USES_MAX 3
#define USES_NEW 1
#define SHORT_BYTES 72
#define LONG_BYTES CFD_DELIVERY_KEPT_BYTES

static bool enabled = true;
static int	memory = 16 * 1024;

/* ---------- the tables ---------- */

typedef struct Cell
{
	uint64		period;			/* 0: empty */
	CfdFid		fid;
	uint16		length;
	uint8		type;
	uint8		uses;
	char		envelope[FLEXIBLE_ARRAY_MEMBER];
} Cell;

/* Header of a set; its cells follow. */
typedef struct Set
{
	slock_t		lock;
	int			hand;			/* cell at which the next search for a victim starts */
} Set;

typedef struct Table
{
	Size		room;			/* bytes for an envelope */
	Size		stride;			/* size of a cell */
	Size		size;			/* size of a set */
	uint32		sets;			/* number of sets; 0: table disabled */
	char	   *base;
} Table;

static Table tables[] = {{.room = SHORT_BYTES}, {.room = LONG_BYTES}};

/* Computes the dimensions. Each table gets half of the memory. */
static void
measure(Table *table)
{
	table->stride = MAXALIGN(offsetof(Cell, envelope) + table->room);
	table->size = CACHELINEALIGN(MAXALIGN(sizeof(Set)) + WAYS * table->stride);
	table->sets = (Size) memory * 1024 / lengthof(tables) / table->size;
}

static Size
table_bytes(void)
{
	Size		bytes = 0;

	for (int i = 0; i < lengthof(tables); i++)
	{
		measure(&tables[i]);
		bytes = add_size(bytes, mul_size(tables[i].sets, tables[i].size));
	}
	return bytes;
}

void
cfd_delivery_request_shmem(void)
{
	RequestAddinShmemSpace(add_size(table_bytes(), PG_CACHE_LINE_SIZE));
}

static Set *
set_at(const Table *table, uint32 number)
{
	return (Set *) (table->base + (Size) number * table->size);
}

static Cell *
cell_at(const Table *table, Set *set, int number)
{
	return (Cell *) ((char *) set + MAXALIGN(sizeof(Set)) + (Size) number * table->stride);
}

void
cfd_delivery_init_shmem(void)
{
	Size		bytes = table_bytes();
	char	   *base;
	bool		found;

	if (bytes == 0)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	base = ShmemInitStruct("confide delivery", bytes + PG_CACHE_LINE_SIZE, &found);
	base = (char *) CACHELINEALIGN(base);
	if (!found)
		memset(base, 0, bytes);
	for (int i = 0; i < lengthof(tables); i++)
	{
		tables[i].base = base;
		for (uint32 n = 0; !found && n < tables[i].sets; n++)
			SpinLockInit(&set_at(&tables[i], n)->lock);
		base += (Size) tables[i].sets * tables[i].size;
	}
	LWLockRelease(AddinShmemInitLock);
}

static Set *
set_of(const Table *table, CfdFid fid)
{
	uint64		hash = fid * UINT64CONST(0x9E3779B97F4A7C15);

	return set_at(table, (uint32) ((hash >> 32) % table->sets));
}

/* Copies an envelope out. Returns its length, or 0. */
static uint32
look(const Table *table, uint64 period, CfdFid fid, uint8 type, char *to)
{
	Set		   *set;
	uint32		length = 0;

	if (table->sets == 0)
		return 0;
	set = set_of(table, fid);
	SpinLockAcquire(&set->lock);
	for (int i = 0; i < WAYS; i++)
	{
		Cell	   *cell = cell_at(table, set, i);

		if (cell->fid != fid || cell->period != period || cell->type != type || cell->length > table->room)
			continue;
		length = cell->length;
		memcpy(to, cell->envelope, length);
		if (cell->uses < USES_MAX)
			cell->uses++;
		break;
	}
	SpinLockRelease(&set->lock);
	return length;
}

/* Chooses the cell for a value: its own, an invalid one, or a victim. */
static Cell *
place(const Table *table, Set *set, uint64 period, CfdFid fid)
{
	for (int i = 0; i < WAYS; i++)
	{
		Cell	   *cell = cell_at(table, set, i);

		if (cell->fid == fid)
			return cell;
	}
	for (int i = 0; i < WAYS * (USES_MAX + 1); i++)
	{
		Cell	   *cell = cell_at(table, set, set->hand);

		set->hand = (set->hand + 1) & (WAYS - 1);
		if (cell->period != period || cell->uses == 0)
			return cell;
		cell->uses--;
	}
	return cell_at(table, set, set->hand & (WAYS - 1));
}

void
cfd_delivery_keep(uint64 period, CfdFid fid, uint8 type, const char *envelope, uint32 length)
{
	const Table *table = &tables[length > SHORT_BYTES];
	Set		   *set;
	Cell	   *cell;

	if (length == 0 || length > LONG_BYTES || table->sets == 0)
		return;
	set = set_of(table, fid);
	SpinLockAcquire(&set->lock);
	/* Do not trust the value in shared memory. */
	set->hand &= WAYS - 1;
	cell = place(table, set, period, fid);
	cell->period = period;
	cell->fid = fid;
	cell->length = length;
	cell->type = type;
	cell->uses = USES_NEW;
	memcpy(cell->envelope, envelope, length);
	SpinLockRelease(&set->lock);
}

/* ---------- column keys of the client ---------- */

typedef enum ColumnState
{
	COLUMN_UNKNOWN = 0,
	COLUMN_DENIED,				/* the client may not have the key */
	COLUMN_WRITTEN,				/* an envelope with the key was written */
	COLUMN_KNOWN				/* and has been sent */
} ColumnState;

typedef struct Column
{
	uint32		partition;
	ColumnState state;
	uint64		statement;		/* statement in which it was written */
	uint64		failures;		/* number of failures before that */
} Column;

static HTAB *columns = NULL;
/* Period and client for which the table of columns is valid. */
static uint64 columns_period = 0;
static uint32 columns_client = 0;

static uint64 statements = 0;
static uint64 failures = 0;

void
cfd_delivery_statement(void)
{
	statements++;
}

void
cfd_delivery_failed(void)
{
	failures++;
}

/* Resets the table for another period or client. */
static void
forget_columns(uint64 period)
{
	HASHCTL		control = {.keysize = sizeof(uint32),.entrysize = sizeof(Column)};

	if (columns != NULL)
		hash_destroy(columns);
	columns = NULL;
	control.hcxt = TopMemoryContext;
	columns = hash_create("Confide columns", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	columns_period = period;
	columns_client = cfd_channel.clients;
}

static Column *
cfd_delivery_column(uint32 partition, bool make)
{
	bool		found;
	Column	   *column = hash_search(columns, &partition, make ? HASH_ENTER : HASH_FIND, &found);

	if (make && !found)
		column->state = COLUMN_UNKNOWN;
	return column;
}

uint64
cfd_delivery_period(void)
{
	uint64		period;

	if (!enabled || memory == 0)
		return 0;
	cfd_channel_look_after();
	if (!cfd_channel.connected || !cfd_channel.had_client || cfd_channel.lost_client)
		return 0;
	period = *(volatile uint64 *) (cfd_channel.link.base + CFD_PERIOD_OFFSET);
	pg_read_barrier();
	if (period != 0 && (columns == NULL || period != columns_period || columns_client != cfd_channel.clients))
		forget_columns(period);
	return period;
}

/* State of a column. A write that is followed by a failure no longer counts. */
static ColumnState
delivery_state(uint32 partition)
{
	Column	   *column = cfd_delivery_column(partition, false);

	if (column == NULL)
		return COLUMN_UNKNOWN;
	if (column->state == COLUMN_WRITTEN && column->failures != failures)
		column->state = COLUMN_UNKNOWN;
	if (column->state == COLUMN_WRITTEN && column->statement != statements)
		column->state = COLUMN_KNOWN;
	return column->state;
}

uint8
cfd_delivery_form(CfdFid fid)
{
	if (cfd_fid_is_temporary(fid))
		return CFD_DELIVERY_SESSION;
	switch (delivery_state(cfd_fid_partition(fid)))
	{
		case COLUMN_UNKNOWN:
			return CFD_DELIVERY_KEYED;
		case COLUMN_KNOWN:
			return CFD_DELIVERY_DELIVERY;
		default:
			return CFD_DELIVERY_SESSION;
	}
}

bool
cfd_delivery_expected(uint32 partition)
{
	return delivery_state(partition) == COLUMN_KNOWN;
}

bool
cfd_delivery_find(uint64 period, CfdFid fid, uint8 type, const char **envelope, uint32 *length)
{
	char		found[LONG_BYTES];
	char	   *copy;

	*length = 0;
	for (int i = 0; i < lengthof(tables) && *length == 0; i++)
		*length = look(&tables[i], period, fid, type, found);
	if (*length == 0)
		return false;
	copy = palloc(*length);
	memcpy(copy, found, *length);
	*envelope = copy;
	return true;
}

bool
cfd_delivery_came(uint64 period, CfdFid fid, uint8 type, uint8 form, const char *envelope, uint32 length)
{
	uint8		origin = length > CFD_ENVELOPE_HEADER_BYTES ? envelope[1] : 0;

	if (form == CFD_DELIVERY_DELIVERY && origin == CFD_ORIGIN_DELIVERY)
		cfd_delivery_keep(period, fid, type, envelope, length);
	if (form != CFD_DELIVERY_KEYED)
		return false;
	if (origin == CFD_ORIGIN_KEEPER && (envelope[3] & CFD_ENVELOPE_FLAG_KEYED) != 0)
		return true;
	if (period == columns_period)
		cfd_delivery_column(cfd_fid_partition(fid), true)->state = COLUMN_DENIED;
	return false;
}

void
cfd_delivery_written(uint64 period, CfdFid fid)
{
	Column	   *column;

	if (period != columns_period)
		return;
	column = cfd_delivery_column(cfd_fid_partition(fid), true);
	if (column->state == COLUMN_KNOWN)
		return;
	column->state = COLUMN_WRITTEN;
	column->statement = statements;
	column->failures = failures;
}

/* ---------- settings ---------- */

void
cfd_delivery_init(void)
{
	DefineCustomBoolVariable("confide.delivery",
							 "Values of columns that were sealed once are given to all clients that may see them.",
							 NULL,
							 &enabled,
							 true,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("confide.delivery_memory",
							"Shared memory for values that were sealed for all clients that may see them.",
							"0: none are kept.",
							&memory,
							16 * 1024, 0, 1024 * 1024,
							PGC_POSTMASTER,
							GUC_UNIT_KB,
							NULL, NULL, NULL);
}
