/*
 * collect.h
 *	  Garbage collection: frees values in the keeper that nothing refers
 *	  to.
 *
 * Invariant 2 of the design: a FID that any page, catalog, cursor or variable
 * may still contain resolves to its value.
 */
#ifndef CFD_GC_COLLECT_H
#define CFD_GC_COLLECT_H

#include "postgres.h"
#include "storage/buf.h"
#include "utils/relcache.h"

typedef struct CfdCollected
{
	int64		found;			/* FIDs found on pages and in statistics */
	int64		swept;			/* garbage values freed */
	const char *postponed;		/* reason why nothing was swept, or NULL */
} CfdCollected;

/*
 * Collects the garbage of a table that this transaction has locked in
 * ShareUpdateExclusiveLock mode or stronger. If an estimate of its rows is
 * given (not negative), does so only if there is likely to be enough garbage.
 */
extern CfdCollected cfd_collect(Relation table, BufferAccessStrategy strategy, double rows);
/* Frees the values of a relation of this database that no longer exists. */
extern CfdCollected cfd_collect_orphans(Oid relation);
/* Frees the values of a database that no longer exists. */
extern CfdCollected cfd_collect_database(Oid database);

/*
 * vacuum.c: a palloc'd array of the relations of a database that have
 * partitions in the keeper; with database 0, of such databases.
 */
extern uint32 *cfd_listed_in_keeper(Oid database, int *count);

/*
 * vacuum.c: runs after heap's vacuum of a table. Does not fail if the keeper
 * is unreachable.
 */
struct VacuumParams;
extern void cfd_vacuum_garbage(Relation table, struct VacuumParams *params, BufferAccessStrategy strategy);

extern void cfd_gc_init(void);
/* Setting confide.gc: whether VACUUM collects garbage. */
extern bool cfd_gc_enabled;

#endif
