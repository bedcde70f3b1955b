/*
 * slots.h
 *	  Replication slot functions that differ between major versions of
 *	  PostgreSQL.
 *
 * Separate from compat.h because only the recovery worker needs these headers.
 *
 * Invariant: as in compat.h.
 */
#ifndef CFD_COMPAT_SLOTS_H
#define CFD_COMPAT_SLOTS_H

#include "postgres.h"
#include "replication/slot.h"

/* Creates a persistent physical slot, acquired by this process. */
#if PG_VERSION_NUM >= 170000
#define CFD_SLOT_CREATE(name) ReplicationSlotCreate(name, false, RS_PERSISTENT, false, false, false)
#else
#define CFD_SLOT_CREATE(name) ReplicationSlotCreate(name, false, RS_PERSISTENT, false)
#endif

/* Acquires a slot without waiting for its current owner. */
#if PG_VERSION_NUM >= 180000
#define CFD_SLOT_ACQUIRE(name) ReplicationSlotAcquire(name, true, false)
#else
#define CFD_SLOT_ACQUIRE(name) ReplicationSlotAcquire(name, true)
#endif


#endif
