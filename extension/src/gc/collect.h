/*
 * collect.h
 *	  Garbage collection: frees the values in the keeper that nothing names.
 *
 * Invariant 2 of the design: a FID that any page, catalog, cursor or variable can
 * still hold resolves to its value.
 */
#ifndef CFD_GC_COLLECT_H
#define CFD_GC_COLLECT_H

#include "postgres.h"
#include "storage/buf.h"
#include "utils/relcache.h"

typedef struct CfdCollected
{
	int64		found;			/* FIDs on pages and in statistics */
	int64		swept;			/* values that were garbage */
	const char *postponed;		/* why nothing was swept, NULL if it was */
} CfdCollected;

/*
 * Collects the garbage of a table that this transaction has locked in mode
 * ShareUpdateExclusiveLock or stronger. With an estimate of its rows (below 0:
 * unknown) only if enough garbage is likely.
 */
extern CfdCollected cfd_collect(Relation table, BufferAccessStrategy strategy, double rows);
/* Frees what is left of a relation of this database that does not exist any more. */
extern CfdCollected cfd_collect_orphans(Oid relation);
/* Frees what is left of a database that does not exist any more. */
extern CfdCollected cfd_collect_database(Oid database);

/*
 * vacuum.c: the relations of a database (0: the databases) that have partitions in
 * the keeper; as many as is said, allocated.
 */
extern uint32 *cfd_listed_in_keeper(Oid database, int *count);

/* vacuum.c: after heap's vacuum of a table. Never fails because the keeper is away. */
struct VacuumParams;
extern void cfd_vacuum_garbage(Relation table, struct VacuumParams *params, BufferAccessStrategy strategy);

extern void cfd_gc_init(void);
/* Set by confide.gc: whether VACUUM collects garbage. */
extern bool cfd_gc_enabled;

#endif
