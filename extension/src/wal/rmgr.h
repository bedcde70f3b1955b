/*
 * rmgr.h
 *	  Custom resource manager for the keeper's redo records in PostgreSQL's
 *	  WAL.
 *
 * The records are opaque here. They are written, described by their kind, and
 * skipped by PostgreSQL's own redo; the recovery worker passes them to the
 * keeper.
 *
 * Invariant: after cfd_wal_log has returned, the recovery of any later run of
 * the keeper finds the record.
 */
#ifndef CFD_WAL_RMGR_H
#define CFD_WAL_RMGR_H

#include "postgres.h"

/*
 * Our resource manager ID. It is part of every WAL that we have written and
 * must never change. To be reserved on the wiki page
 * CustomWALResourceManagers.
 */
#define CFD_RMGR_ID 187

/*
 * Minimum length of a record: version, kind, counter, epoch, generation and
 * tag (crate redo).
 */
#define CFD_WAL_RECORD_MIN 40

extern void cfd_rmgr_register(void);

/*
 * Writes a redo record of at least CFD_WAL_RECORD_MIN bytes to the WAL. If
 * `permanent` is false, as for unlogged and temporary relations, the commit
 * does not wait for the record.
 */
extern void cfd_wal_log(const void *record, Size length, bool permanent);

/* Whether a record with this info byte is a sweep of garbage. */
extern bool cfd_wal_is_sweep(uint8 info);

#endif
