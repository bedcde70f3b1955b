/*
 * log.c
 *	  Log of the objects that committed transactions have changed, in
 *	  shared memory; see schema.h.
 *
 * It consists of a ring of entries and, for each database, a version that
 * counts transactions. Databases share a version if their OIDs collide, in
 * which case a client asks once more in vain. Definitions are not stored; they
 * are looked up on request.
 *
 * Invariant: a version is published after its changes have become visible, so
 * that whoever reads the version and then the catalogs sees at least these
 * changes.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "schema/schema.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

/* A transaction with more changes than the ring has entries is logged as "anything". */
#define ENTRIES 16384
#define VERSIONS 1024
#define TRANCHE "confide schema"

typedef struct Entry
{
	Oid			database;
	CfdObject	object;
	uint64		version;
} Entry;

typedef struct Log
{
	LWLock	   *lock;
	uint64		epoch;			/* random number, different after each start */
	uint64		next;			/* number of entries ever written */
	/*
	 * By database: current version, and latest version whose entries were
	 * overwritten.
	 */
	uint64		version[VERSIONS];
	uint64		lost[VERSIONS];
	Entry		entries[ENTRIES];
} Log;

static Log *schema_log = NULL;

void
cfd_schema_request_shmem(void)
{
	RequestAddinShmemSpace(sizeof(Log));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

void
cfd_schema_init_shmem(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	schema_log = ShmemInitStruct("confide schema", sizeof(Log), &found);
	if (!found)
	{
		memset(schema_log, 0, sizeof(Log));
		schema_log->lock = &GetNamedLWLockTranche(TRANCHE)->lock;
		if (!pg_strong_random(&schema_log->epoch, sizeof(schema_log->epoch)))
			ereport(ERROR, errmsg("no random numbers"));
	}
	LWLockRelease(AddinShmemInitLock);
}

static int
slot_of(Oid database)
{
	return database % VERSIONS;
}

static void
write_entry(CfdObject object, uint64 version)
{
	Entry	   *entry = &schema_log->entries[schema_log->next % ENTRIES];

	if (schema_log->next >= ENTRIES)
		schema_log->lost[slot_of(entry->database)] = entry->version;
	*entry = (Entry) {MyDatabaseId, object, version};
	schema_log->next++;
}

uint64
cfd_schema_log(const CfdObject *objects, int count)
{
	uint64		version;

	if (schema_log == NULL)
		return 0;
	LWLockAcquire(schema_log->lock, LW_EXCLUSIVE);
	version = ++schema_log->version[slot_of(MyDatabaseId)];
	if (count > ENTRIES)
		write_entry((CfdObject) {InvalidOid, InvalidOid}, version);
	else
	{
		for (int i = 0; i < count; i++)
			write_entry(objects[i], version);
	}
	LWLockRelease(schema_log->lock);
	return version;
}

uint64
cfd_schema_version(void)
{
	/*
	 * An unlocked read may return a slightly outdated version, which is
	 * harmless because nobody is woken by it.
	 */
	return schema_log == NULL ? 0 : *(volatile uint64 *) &schema_log->version[slot_of(MyDatabaseId)];
}

const char *
cfd_schema_identity(void)
{
	static char identity[64];

	snprintf(identity, sizeof(identity), UINT64_FORMAT ".%u",
			 schema_log == NULL ? 0 : schema_log->epoch, MyDatabaseId);
	return identity;
}

bool
cfd_schema_since(uint64 version, CfdObject **objects, int *count)
{
	int			slot = slot_of(MyDatabaseId);
	uint64		kept;
	int			size = 64;
	bool		known;

	*objects = palloc(size * sizeof(CfdObject));
	*count = 0;
	/* Changes replayed on a standby are not logged. */
	if (schema_log == NULL || RecoveryInProgress())
		return false;
	LWLockAcquire(schema_log->lock, LW_SHARED);
	known = version >= schema_log->lost[slot] && version <= schema_log->version[slot];
	kept = Min(schema_log->next, ENTRIES);
	for (uint64 back = 1; known && back <= kept; back++)
	{
		const Entry *entry = &schema_log->entries[(schema_log->next - back) % ENTRIES];

		if (slot_of(entry->database) != slot)
			continue;
		if (entry->version <= version)
			break;
		if (entry->database != MyDatabaseId)
			continue;
		known = OidIsValid(entry->object.class);
		if (*count == size)
			*objects = repalloc(*objects, (size *= 2) * sizeof(CfdObject));
		(*objects)[(*count)++] = entry->object;
	}
	LWLockRelease(schema_log->lock);
	return known;
}
