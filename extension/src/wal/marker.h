/*
 * marker.h
 *	  The file in PGDATA that identifies the keeper's store with this
 *	  cluster's protected values. Base backups include it.
 *
 * Invariant: once the keeper has made its first checkpoint for this cluster,
 * the file exists until an operator removes it.
 */
#ifndef CFD_WAL_MARKER_H
#define CFD_WAL_MARKER_H

#include "postgres.h"

#define CFD_MARKER_NAME "confide.store"

/* Identifier of the store, or 0 if there is no file. */
extern uint64 cfd_marker_read(void);
/* Whether the file exists. Never raises an error. */
extern bool cfd_marker_exists(void);
extern void cfd_marker_write(uint64 store);

#endif
