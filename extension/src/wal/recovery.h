/*
 * recovery.h
 *	  The recovery worker, which brings a restarted keeper up to date from
 *	  the WAL and triggers its checkpoints (docs/durability.md).
 *
 * Invariant: a keeper serves only after it has received every redo record in
 * the WAL.
 */
#ifndef CFD_WAL_RECOVERY_H
#define CFD_WAL_RECOVERY_H

#include "postgres.h"
#include "access/xlogdefs.h"
#include "compat/compat.h"

/* To be called once, while shared_preload_libraries are loaded. */
extern void cfd_wal_init(void);

pg_noreturn extern PGDLLEXPORT void cfd_recovery_main(Datum arg);

#endif
