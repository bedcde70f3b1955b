/*
 * numbers.c
 *	  Numbers of row versions; see ledger.h.
 *
 * They are those of the sequence confide.ledger_numbers, of which a block at a
 * time is taken into shared memory, for all sessions of the database. So they
 * rise in the order in which rows are written, a number costs no look at the
 * sequence's page, and a session's lastval() does not see them. What is left of
 * a block when the server stops is never given.
 *
 * Invariant: no number is given twice, except those of transactions that a
 * crash took from the WAL: the sequence's record comes there before any use of
 * its block.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "commands/sequence.h"
#include "ledger/ledger.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/fmgrprotos.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* How many numbers are taken at once. So many may never be given when the server stops. */
#define BLOCK 256
/* Blocks of so many databases are kept. Two that share a place lose numbers, not more. */
#define PLACES 64

typedef struct NumberBlock
{
	Oid			database;
	Oid			sequence;
	int64		next;
	int64		end;			/* the first number beyond it */
} NumberBlock;

typedef struct Numbers
{
	LWLock		lock;
	NumberBlock of[PLACES];
} Numbers;

static Numbers *numbers = NULL;

#define NAME "confide ledger numbers"

void
cfd_numbers_request_shmem(void)
{
	RequestAddinShmemSpace(sizeof(Numbers));
}

void
cfd_numbers_init_shmem(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	numbers = ShmemInitStruct(NAME, sizeof(Numbers), &found);
	if (!found)
	{
		memset(numbers, 0, sizeof(*numbers));
		LWLockInitialize(&numbers->lock, LWLockNewTrancheId());
	}
	LWLockRelease(AddinShmemInitLock);
	LWLockRegisterTranche(numbers->lock.tranche, NAME);
}

static Oid	known_sequence = InvalidOid;

static void
numbers_relation_changed(Datum argument, Oid relation)
{
	(void) argument;
	if (!OidIsValid(relation) || relation == known_sequence)
		known_sequence = InvalidOid;
}

static Oid
sequence_oid(void)
{
	static bool watching = false;
	Oid			sequence;

	if (OidIsValid(known_sequence))
		return known_sequence;
	if (!watching)
		CacheRegisterRelcacheCallback(numbers_relation_changed, (Datum) 0);
	watching = true;
	sequence = get_relname_relid("ledger_numbers", get_namespace_oid("confide", false));
	if (!OidIsValid(sequence))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("sequence confide.ledger_numbers does not exist"),
				 errhint("It belongs to the extension confide: create that anew.")));
	known_sequence = sequence;
	return sequence;
}

/* The number that the sequence gives next. */
static int64
next_of(Oid sequence)
{
	Relation	relation = table_open(sequence, NoLock);
	Buffer		buffer = ReadBuffer(relation, 0);
	Page		page = BufferGetPage(buffer);
	HeapTupleHeader tuple;
	Form_pg_sequence_data data;
	int64		next;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	tuple = (HeapTupleHeader) PageGetItem(page, PageGetItemId(page, FirstOffsetNumber));
	data = (Form_pg_sequence_data) ((char *) tuple + tuple->t_hoff);
	next = data->last_value + (data->is_called ? 1 : 0);
	UnlockReleaseBuffer(buffer);
	table_close(relation, NoLock);
	return next;
}

/* Takes a block of the sequence, as its owner would with setval(). */
static void
take_block(NumberBlock *block, Oid sequence)
{
	int64		next = next_of(sequence);
	Oid			user;
	int			context;

	block->end = 0;
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID, context | SECURITY_LOCAL_USERID_CHANGE);
	(void) DirectFunctionCall2(setval_oid, ObjectIdGetDatum(sequence), Int64GetDatum(next + BLOCK - 1));
	SetUserIdAndSecContext(user, context);
	*block = (NumberBlock) {MyDatabaseId, sequence, next, next + BLOCK};
}

static bool
has_more(const NumberBlock *block, Oid sequence)
{
	return block->database == MyDatabaseId && block->sequence == sequence && block->next < block->end;
}

int64
cfd_ledger_new_number(void)
{
	Oid			sequence = sequence_oid();
	NumberBlock *block;
	int64		number;

	if (numbers == NULL)
		elog(ERROR, "confide is not among shared_preload_libraries");
	block = &numbers->of[MyDatabaseId % PLACES];
	LWLockAcquire(&numbers->lock, LW_EXCLUSIVE);
	if (!has_more(block, sequence))
	{
		/* Whoever has the lock on numbers must not wait for the sequence. */
		LWLockRelease(&numbers->lock);
		LockRelationOid(sequence, RowExclusiveLock);
		LWLockAcquire(&numbers->lock, LW_EXCLUSIVE);
		if (!has_more(block, sequence))
			take_block(block, sequence);
	}
	number = block->next++;
	LWLockRelease(&numbers->lock);
	return number;
}
