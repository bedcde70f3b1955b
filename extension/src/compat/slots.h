/*
 * slots.h
 *	  Replication slots: what differs between PostgreSQL's major versions.
 *
 * Beside compat.h, because only the recovery worker needs these headers.
 *
 * Invariant: as of compat.h.
 */
#ifndef CFD_COMPAT_SLOTS_H
#define CFD_COMPAT_SLOTS_H

#include "postgres.h"
#include "replication/slot.h"

/* A persistent physical slot, held by this process. */
#if PG_VERSION_NUM >= 170000
#define CFD_SLOT_CREATE(name) ReplicationSlotCreate(name, false, RS_PERSISTENT, false, false, false)
#else
#define CFD_SLOT_CREATE(name) ReplicationSlotCreate(name, false, RS_PERSISTENT, false)
#endif

/* Without waiting for whoever holds it. */
#if PG_VERSION_NUM >= 180000
#define CFD_SLOT_ACQUIRE(name) ReplicationSlotAcquire(name, true, false)
#else
#define CFD_SLOT_ACQUIRE(name) ReplicationSlotAcquire(name, true)
#endif


#endif
