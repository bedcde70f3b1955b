/*
 * policy.h
 *	  Redo records of what owners of columns and definitions said. Standbys'
 *	  keepers, and those of restored clusters, learn it from the WAL.
 *
 * Invariant: after cfd_log_policies has returned, everything that the keeper
 * had accepted before is in the WAL and on disk.
 */
#ifndef CFD_WAL_POLICY_H
#define CFD_WAL_POLICY_H

#include "postgres.h"

/* Writes what the WAL lacks. Does nothing on a standby. */
extern void cfd_log_policies(void);

#endif
