/*
 * transaction.c
 *	  Operations of a transaction on ledger tables until its end; see
 *	  ledger.h.
 *
 * The keeper is told about each row by a one-way message with the row's number
 * in the transaction. No statement waits for it: what the keeper refuses is an
 * error of the commit. A repeated number means that everything from it on was
 * rolled back to a savepoint. Before the commit, the keeper turns the
 * remaining operations into entries, and their redo record is written to the
 * WAL under a lock. The WAL therefore contains the entries in order. With them
 * it confirms the values that the transaction has adopted (adopt.h). If a
 * record was not written, or may have been lost with the end of the WAL, the
 * next transaction tells the keeper, which then logs its entries again. After
 * the commit the keeper is told about it without being woken.
 *
 * Invariant: nothing here raises an error after the commit record was written,
 * or during an abort.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_am.h"
#include "ledger/ledger.h"
#include "session/answers.h"
#include "session/channel.h"
#include "session/gate.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "value/adopt.h"
#include "value/adopted.h"
#include "value/delivery.h"
#include "wal/fault.h"
#include "wal/rmgr.h"

/* Number of operations done before the first one in a subtransaction of this level. */
typedef struct Mark
{
	int			level;
	uint64		before;
} Mark;

static Mark *marks = NULL;
static int	mark_count = 0;
static int	mark_size = 0;

/*
 * So many protected values of versions that go to histories are sent without
 * waiting: the commit logs them all.
 */
#define MOVES_MAX 4096

static uint64 done = 0;
static int	moves = 0;			/* values sent */
static uint32 generation;		/* channel generation that knows them */
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

	/* A transaction that has written already fails if the channel is another one now. */
	if (done == 0)
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

/*
 * Outside of a transaction block the commit follows at once, so the keeper is
 * woken for the first row: it deals with it meanwhile. Without an idle CPU it
 * would only interrupt us twice.
 */
void
cfd_ledger_row_sent(void)
{
	if (done == 1 && !IsTransactionBlock() && cfd_channel_has_idle_cpus())
		cfd_channel_publish_requests();
}

int
cfd_ledger_moves_left(void)
{
	return MOVES_MAX - moves;
}

void
cfd_ledger_tell_moved(const CfdWireMoved *moved, int count)
{
	CfdWireLedgerMove body = {.count = count};

	moves += count;
	cfd_send_deferred(CFD_KIND_LEDGER_MOVE, &body, sizeof(body), moved, count * sizeof(CfdWireMoved));
	if (generation != cfd_channel.generation)
		keeper_lost();
}

/*
 * Serialises writing entries to the WAL, of all databases: the lock is of no
 * database's access method. While it is held, nothing but the keeper is waited
 * for.
 */
static void
lock_order(LOCKTAG *tag)
{
	SET_LOCKTAG_OBJECT(*tag, InvalidOid, AccessMethodRelationId, InvalidOid, 0);
	if (LockAcquire(tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL)
		return;
	/* Meanwhile the keeper deals with what waits in the ring. Otherwise it is woken once for all. */
	cfd_channel_publish_requests();
	(void) LockAcquire(tag, ExclusiveLock, false, false);
}

/* More delivery envelopes are asked for separately: others wait for the lock while they are sealed. */
#define ENVELOPES_MAX 16

/* Whether the transaction has adopted values that are confirmed with its entries. Sets what else is wanted. */
static bool
confirms(uint64 *period, CfdWireWanted *wanted, int *many)
{
	bool		together;

	*many = cfd_adopt_confirmable() ? cfd_adopted_wanted(period, wanted) : 0;
	together = cfd_adopt_confirmable() && *many <= ENVELOPES_MAX;
	if (!together)
		*many = 0;
	return together;
}

/*
 * Asks the keeper for a redo record of entries, which is written to the WAL, and for the
 * confirmation of adopted values. Returns whether there is more.
 */
static bool
seal(CfdWireLedgerSeal *body)
{
	CfdWireWanted wanted[CFD_DELIVERY_VALUES_MAX];
	CfdReadLedgerSealAnswer read;
	uint64		period = 0;
	int			many;
	uint32		length;
	const char *answer;

	body->adopted = confirms(&period, wanted, &many);
	body->period = period;
	answer = cfd_call(CFD_KIND_LEDGER_SEAL, body, sizeof(*body), wanted, many * sizeof(*wanted), &length);
	CFD_DECODE(ledger_seal_answer, answer, length, &read);
	cfd_fault("ledger-sealed");
	if (read.record_length > 0 && read.record_length < CFD_WAL_RECORD_MIN)
		cfd_violation("redo record is too short");
	if (read.record_length > 0)
		cfd_wal_log(read.record, read.record_length, true);
	if (body->adopted != 0)
	{
		cfd_adopted_delivered(period, wanted, many, read.envelopes);
		cfd_adopt_confirmed();
	}
	return read.head.more != 0;
}

void
cfd_ledger_before_commit(void)
{
	CfdWireLedgerSeal body = {.count = done};
	LOCKTAG		tag;
	bool	   *lost;

	if (done == 0)
		return;
	cfd_begin();
	if (generation != cfd_channel.generation)
		keeper_lost();
	lock_order(&tag);
	lost = cfd_state_entries_lost();
	body.lost = *lost;
	*lost = true;
	sealed = true;
	while (seal(&body))
		body = (CfdWireLedgerSeal) {0};
	*lost = false;
	cfd_channel.deferred = false;
	LockRelease(&tag, ExclusiveLock, false);
	/* The keeper learns that we have committed, which must not be lost then. */
	ForceSyncCommit();
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

	/*
	 * If this message is lost, the outcome of the entries is unknown, as after
	 * a crash. A commit wakes nobody: the keeper finds it with our next
	 * message, or looks soon by itself. The versions that an abort revives may
	 * be replaced by others at once.
	 */
	if (sealed && cfd_channel.connected && generation == cfd_channel.generation)
		(void) cfd_try_send(CFD_KIND_LEDGER_END, &body, sizeof(body), !committed);
	sealed = false;
	done = 0;
	moves = 0;
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
