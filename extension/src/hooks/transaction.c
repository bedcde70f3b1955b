/*
 * transaction.c
 *	  Ends of transactions and subtransactions. Errors of one-way
 *	  operations are raised before a commit and discarded after an abort.
 *	  Values of dropped relations are removed once the drop has committed.
 *
 * The keeper has no transactions, so nothing is committed there (design,
 * section 5).
 *
 * Invariant: nothing here raises an error after the commit record was written,
 * or during an abort.
 */
#include "postgres.h"

#include "access/xact.h"
#include "session/channel.h"
#include "session/pins.h"
#include "gc/places.h"
#include "hooks/hooks.h"
#include "ledger/ledger.h"
#include "miscadmin.h"
#include "value/adopt.h"
#include "value/delivery.h"
#include "schema/schema.h"
#include "utils/memutils.h"

typedef struct Dropped
{
	Oid			relation;
	int			level;			/* nesting level of the subtransaction; 0: committed */
} Dropped;

static Dropped *dropped = NULL;
static int	dropped_count = 0;
static int	dropped_size = 0;

void
cfd_note_dropped(Oid relation)
{
	if (dropped_count == dropped_size)
	{
		int			size = Max(16, dropped_size * 2);

		if (dropped == NULL)
			dropped = MemoryContextAlloc(TopMemoryContext, size * sizeof(Dropped));
		else
			dropped = repalloc_huge(dropped, size * sizeof(Dropped));
		dropped_size = size;
	}
	dropped[dropped_count++] = (Dropped) {relation, GetCurrentTransactionNestLevel()};
}

/* Tells the keeper about committed drops, as far as that is possible now. */
void
cfd_flush_dropped(void)
{
	int			kept = 0;

	if (likely(dropped_count == 0) || !cfd_channel.connected)
		return;
	/* A cursor WITH HOLD may still name values of a dropped table. */
	if (cfd_any_holder() != 0)
		return;
	for (int i = 0; i < dropped_count; i++)
	{
		CfdWirePartitionDrop body = {.database = MyDatabaseId,.relation = dropped[i].relation};

		if (dropped[i].level != 0 || !cfd_try_send(CFD_KIND_PARTITION_DROP, &body, sizeof(body), true))
			dropped[kept++] = dropped[i];
	}
	dropped_count = kept;
}

static bool
dropped_in_transaction(void)
{
	for (int i = 0; i < dropped_count; i++)
	{
		if (dropped[i].level > 0)
			return true;
	}
	return false;
}

static void move_drops(int from, int to);

/*
 * Opens the channel for the drops. A keeper that is down does not prevent
 * them. Inherited statistics of a parent table may name values of a dropped
 * child. In that case the drops are left to garbage collection, which finds
 * out what is still in use.
 */
static void
cfd_transaction_reach_keeper(void)
{
	MemoryContext context = CurrentMemoryContext;

	if (!dropped_in_transaction())
		return;
	if (cfd_any_inherited_statistics())
		move_drops(1, -1);
	if (cfd_channel.connected || !dropped_in_transaction())
		return;
	PG_TRY();
	{
		cfd_begin();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED || error->sqlerrcode == ERRCODE_ADMIN_SHUTDOWN)
			PG_RE_THROW();
		FlushErrorState();
		ereport(WARNING,
				(errcode(error->sqlerrcode),
				 errmsg("values of dropped tables stay in Confide's keeper until it collects garbage"),
				 errdetail_internal("%s", error->message)));
		FreeErrorData(error);
	}
	PG_END_TRY();
}

/*
 * Assigns drops of a level and deeper to another level: the parent's, 0
 * (committed), or -1 to forget them.
 */
static void
move_drops(int from, int to)
{
	int			kept = 0;

	for (int i = 0; i < dropped_count; i++)
	{
		if (dropped[i].level >= from)
		{
			if (to < 0)
				continue;
			dropped[i].level = to;
		}
		dropped[kept++] = dropped[i];
	}
	dropped_count = kept;
}

static void
cfd_transaction_forget(void)
{
	if (cfd_channel.connected && (cfd_channel.outstanding || cfd_channel.deferred || cfd_channel.unasked ||
								  cfd_adopt_unconfirmed()))
	{
		cfd_channel.forget = true;
		cfd_channel.ready = false;
		cfd_channel.outstanding = cfd_channel.deferred = cfd_channel.unasked = false;
	}
}

static void
transaction_event(XactEvent event, void *arg)
{
	(void) arg;
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			cfd_schema_before_commit();
			/* If it waits, its answer brings all errors, and nothing is left to fence. */
			cfd_ledger_before_commit();
			cfd_adopt_before_commit();
			cfd_fence_deferred();
			cfd_transaction_reach_keeper();
			break;
		case XACT_EVENT_PRE_PREPARE:
			cfd_ledger_before_prepare();
			cfd_adopt_before_commit();
			cfd_fence_outstanding();
			break;
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
			cfd_fence_outstanding();
			break;
		case XACT_EVENT_COMMIT:
			/* Values that nobody has used. */
			cfd_transaction_forget();
			cfd_channel.clock_told = false;
			cfd_ledger_ended(true);
			cfd_schema_ended(true);
			move_drops(1, 0);
			cfd_flush_dropped();
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			cfd_channel.clock_told = false;
			cfd_delivery_failed();
			cfd_ledger_ended(false);
			cfd_schema_ended(false);
			cfd_abort_writer(1);
			cfd_transaction_forget();
			cfd_adopt_ended();
			move_drops(1, -1);
			break;
		case XACT_EVENT_PREPARE:
			cfd_channel.clock_told = false;
			cfd_schema_ended(false);
			/*
			 * If the prepared transaction commits, garbage collection will
			 * remove the values.
			 */
			move_drops(1, -1);
			break;
		case XACT_EVENT_PARALLEL_COMMIT:
			cfd_channel.clock_told = false;
			break;
	}
}

static void
subtransaction_event(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();

	(void) mine;
	(void) parent;
	(void) arg;
	switch (event)
	{
		case SUBXACT_EVENT_PRE_COMMIT_SUB:
			cfd_fence_outstanding();
			break;
		case SUBXACT_EVENT_COMMIT_SUB:
			cfd_schema_subtransaction(level, true);
			cfd_ledger_subtransaction(level, true);
			move_drops(level, level - 1);
			break;
		case SUBXACT_EVENT_ABORT_SUB:
			cfd_delivery_failed();
			cfd_schema_subtransaction(level, false);
			cfd_ledger_subtransaction(level, false);
			cfd_abort_writer(level);
			cfd_transaction_forget();
			move_drops(level, -1);
			break;
		case SUBXACT_EVENT_START_SUB:
			/* Also called after ROLLBACK TO. */
			cfd_schema_report();
			break;
	}
}

void
cfd_transaction_init(void)
{
	RegisterXactCallback(transaction_event, NULL);
	RegisterSubXactCallback(subtransaction_event, NULL);
}
