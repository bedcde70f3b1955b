/*
 * touched.c
 *	  Objects that this transaction has created, altered or dropped; see
 *	  schema.h.
 *
 * An object is touched whenever object_access_hook reports it, whatever the
 * cause: a statement, a function, an extension script, a cascade. It is
 * returned (taken) once each time, and again when a subtransaction that
 * touched it is rolled back. Definitions are looked up when objects are taken,
 * so they are always current.
 *
 * Invariant: everything that the transaction changed without rolling it back
 * is in the log after commit.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "schema/schema.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

typedef struct Touched
{
	CfdObject	object;
	int			level;			/* nesting level of the innermost transaction that touched it */
	bool		created;		/* created in this transaction */
	bool		gone;
	bool		pending;		/* touched since it was last taken */
} Touched;

static MemoryContext context = NULL;
static HTAB *touched = NULL;
static int	deepest = 0;
/* Pending objects in order; some of them may no longer be pending. */
static CfdObject *pending = NULL;
static int	pending_first = 0;
static int	pending_count = 0;
static int	pending_size = 0;

static void
touched_begin(void)
{
	HASHCTL		control = {.keysize = sizeof(CfdObject), .entrysize = sizeof(Touched)};

	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "confide schema", ALLOCSET_SMALL_SIZES);
	control.hcxt = context;
	pending_size = 64;
	pending = MemoryContextAlloc(context, pending_size * sizeof(CfdObject));
	touched = hash_create("confide schema", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static void
add_pending(Touched *entry)
{
	if (entry->pending)
		return;
	if (pending_count == pending_size)
	{
		pending = repalloc_huge(pending, 2 * pending_size * sizeof(CfdObject));
		pending_size *= 2;
	}
	pending[pending_count++] = entry->object;
	entry->pending = true;
}

void
cfd_schema_touch(Oid class, Oid object, bool created, bool dropped)
{
	CfdObject	key = {class, object};
	Touched    *entry;
	bool		found;

	if (OidIsValid(class) && class != RelationRelationId && class != TypeRelationId &&
		class != ProcedureRelationId && class != NamespaceRelationId)
		return;
	if (touched == NULL)
		touched_begin();
	entry = hash_search(touched, &key, HASH_ENTER, &found);
	if (!found)
	{
		entry->created = false;
		entry->pending = false;
	}
	entry->created |= created;
	entry->gone = dropped;
	entry->level = GetCurrentTransactionNestLevel();
	deepest = Max(deepest, entry->level);
	add_pending(entry);
}

bool
cfd_schema_touched(void)
{
	return touched != NULL;
}

bool
cfd_schema_pending(void)
{
	return touched != NULL && pending_first < pending_count;
}

bool
cfd_schema_take(CfdObject *object)
{
	Touched    *entry;

	if (touched == NULL)
		return false;
	if (pending_first == pending_count)
	{
		pending_first = pending_count = 0;
		return false;
	}
	*object = pending[pending_first++];
	entry = hash_search(touched, object, HASH_FIND, NULL);
	if (entry != NULL)
		entry->pending = false;
	return true;
}

void
cfd_schema_found(const CfdObject *object, bool exists)
{
	Touched    *entry = touched == NULL ? NULL : hash_search(touched, object, HASH_FIND, NULL);

	if (entry != NULL)
		entry->gone = !exists;
}

void
cfd_schema_subtransaction(int level, bool commit)
{
	HASH_SEQ_STATUS scan;
	Touched    *entry;

	if (touched == NULL || deepest < level)
		return;
	hash_seq_init(&scan, touched);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (entry->level < level)
			continue;
		entry->level = level - 1;
		if (commit)
			continue;
		entry->gone = false;
		add_pending(entry);
	}
	deepest = level - 1;
}

static uint64
log_touched(void)
{
	const CfdObject anything = {InvalidOid, InvalidOid};
	HASH_SEQ_STATUS scan;
	Touched    *entry;
	CfdObject  *objects = MemoryContextAllocExtended(context,
													 hash_get_num_entries(touched) * sizeof(CfdObject),
													 MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	int			count = 0;

	/* Errors are no longer possible. */
	if (objects == NULL)
		return cfd_schema_log(&anything, 1);
	hash_seq_init(&scan, touched);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (!(entry->created && entry->gone))
			objects[count++] = entry->object;
	}
	return count == 0 ? 0 : cfd_schema_log(objects, count);
}

uint64
cfd_schema_end(bool commit)
{
	uint64		version = 0;

	if (touched == NULL)
		return 0;
	if (commit)
		version = log_touched();
	touched = NULL;
	pending = NULL;
	pending_first = pending_count = deepest = 0;
	MemoryContextReset(context);
	return version;
}
