/*
 * transaction.c
 *	  What a transaction does to ledger tables, until it ends: see ledger.h.
 *
 * The keeper has been told of each row by a one-way message, with its number in the
 * transaction: a number that comes again says that what came since was rolled back to a savepoint.
 * Before the commit the keeper makes entries of what is left, and their redo record goes into
 * the WAL, under a lock: so the WAL has the entries in their order, and what is lost with its
 * tail leaves no gap. After the commit the keeper is told of it.
 *
 * Invariant: nothing here raises an error after the commit record is written or while a
 * transaction aborts.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_am.h"
#include "ledger/ledger.h"
#include "session/channel.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "wal/fault.h"
#include "wal/rmgr.h"

/* So much was done before a subtransaction of this level did something. */
typedef struct Mark
{
	int			level;
	uint64		before;
} Mark;

static Mark *marks = NULL;
static int	mark_count = 0;
static int	mark_size = 0;

static uint64 done = 0;
static uint32 generation;		/* of the channel that knows it */
static TimestampTz began;
static bool sealed = false;		/* entries may have been made */

static void
push_mark(int level)
{
	if (mark_count == mark_size)
	{
		int			size = Max(16, mark_size * 2);

		if (marks == NULL)
			marks = MemoryContextAlloc(TopMemoryContext, size * sizeof(Mark));
		else
			marks = repalloc(marks, size * sizeof(Mark));
		mark_size = size;
	}
	marks[mark_count++] = (Mark) {level, done};
}

static void
keeper_lost(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("Confide's keeper was restarted while a ledger table was changed"),
			 errhint("The transaction had no effect; try again.")));
}

const char *
cfd_ledger_principal(void)
{
	static char name[256];
	static uint32 of = 0;
	CfdReadLedgerWhoAnswer read;
	const char *answer;
	uint32		length;

	cfd_begin();
	if (of == cfd_channel.generation && name[0] != '\0')
		return name;
	answer = cfd_call(CFD_KIND_LEDGER_WHO, NULL, 0, NULL, 0, &length);
	CFD_DECODE(ledger_who_answer, answer, length, &read);
	if (strlcpy(name, read.name, sizeof(name)) >= sizeof(name))
		cfd_violation("a client's name is too long");
	of = cfd_channel.generation;
	return name;
}

TimestampTz
cfd_ledger_time(void)
{
	if (done == 0)
		began = GetCurrentTimestamp();
	return began;
}

uint64
cfd_ledger_next(void)
{
	int			level = GetCurrentTransactionNestLevel();

	cfd_begin();
	if (done == 0)
		generation = cfd_channel.generation;
	else if (generation != cfd_channel.generation)
		keeper_lost();
	if (mark_count == 0 || marks[mark_count - 1].level < level)
		push_mark(level);
	return done++;
}

/* Entries come into the WAL in their order. Nobody waits for anything but the keeper meanwhile. */
static void
lock_order(LOCKTAG *tag)
{
	SET_LOCKTAG_OBJECT(*tag, InvalidOid, AccessMethodRelationId, cfd_access_method(), 0);
	(void) LockAcquire(tag, ExclusiveLock, false, false);
}

void
cfd_ledger_before_commit(void)
{
	CfdWireLedgerSeal body = {.count = done};
	CfdReadLedgerSealAnswer read;
	LOCKTAG		tag;

	if (done == 0)
		return;
	cfd_begin();
	if (generation != cfd_channel.generation)
		keeper_lost();
	lock_order(&tag);
	sealed = true;
	do
	{
		uint32		length;
		const char *answer = cfd_call(CFD_KIND_LEDGER_SEAL, &body, sizeof(body), NULL, 0, &length);

		CFD_DECODE(ledger_seal_answer, answer, length, &read);
		cfd_fault("ledger-sealed");
		if (read.record_length > 0 && read.record_length < CFD_WAL_RECORD_MIN)
			cfd_violation("redo record is too short");
		if (read.record_length > 0)
			cfd_wal_log(read.record, read.record_length, true);
		body.count = 0;
	} while (read.head.more != 0);
	LockRelease(&tag, ExclusiveLock, false);
	cfd_fault("ledger-logged");
}

void
cfd_ledger_before_prepare(void)
{
	if (done > 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that has changed ledger tables")));
}

void
cfd_ledger_ended(bool committed)
{
	CfdWireLedgerEnd body = {.committed = committed};

	/* If it does not get there, the entries are in doubt, as after a crash. */
	if (sealed && cfd_channel.connected && generation == cfd_channel.generation)
		(void) cfd_try_send(CFD_KIND_LEDGER_END, &body, sizeof(body), true);
	sealed = false;
	done = 0;
	mark_count = 0;
	cfd_ledger_erase_forget(0);
}

void
cfd_ledger_subtransaction(int level, bool committed)
{
	if (!committed)
		cfd_ledger_erase_forget(level);
	while (mark_count > 0 && marks[mark_count - 1].level >= level)
	{
		if (committed)
		{
			if (mark_count > 1 ? marks[mark_count - 2].level >= level - 1 : level <= 1)
				mark_count--;
			else
				marks[mark_count - 1].level = level - 1;
			return;
		}
		done = marks[--mark_count].before;
	}
}
