/*
 * rmgr.h
 *	  The keeper's redo records in PostgreSQL's WAL: a custom resource manager.
 *
 * A record is opaque here: it is written, described by its kind, and skipped by
 * PostgreSQL's own recovery (the recovery worker hands it to the keeper).
 *
 * Invariant: when cfd_wal_log returns, whoever brings a later run of the keeper
 * up to date will find the record.
 */
#ifndef CFD_WAL_RMGR_H
#define CFD_WAL_RMGR_H

#include "postgres.h"

/*
 * Number of our resource manager; it is in every WAL that we wrote and must
 * never change. To be reserved on PostgreSQL's page CustomWALResourceManagers.
 */
#define CFD_RMGR_ID 187

/* Version, kind, counter, epoch, generation and tag: no record is shorter (crate redo). */
#define CFD_WAL_RECORD_MIN 40

extern void cfd_rmgr_register(void);

/*
 * Puts a redo record (of at least CFD_WAL_RECORD_MIN bytes) into the WAL. For a relation that
 * is not permanent, the transaction need not wait for the record at its commit.
 */
extern void cfd_wal_log(const void *record, Size length, bool permanent);

/* Whether a record of ours with this info byte is a sweep of garbage. */
extern bool cfd_wal_is_sweep(uint8 info);

#endif
