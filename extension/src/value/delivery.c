/*
 * delivery.c
 *	  Which delivery envelopes may be kept and given out; see delivery.h.
 *
 * Invariants: as in delivery.h.
 */
#include "postgres.h"

#include "value/delivery.h"
#include "miscadmin.h"
#include "session/channel.h"
#include "value/kept.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

static bool enabled = true;

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

	if (!enabled || !cfd_kept_enabled())
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
	char		found[CFD_DELIVERY_KEPT_BYTES];
	char	   *copy;

	*length = cfd_kept_get(period, fid, type, found);
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
		cfd_kept_put(period, fid, type, envelope, length);
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
	cfd_kept_init();
}
