/*
 * marker.h
 *	  The file below PGDATA that remembers which keeper's store holds this cluster's
 *	  protected values. Base backups take it along.
 *
 * Invariant: once the keeper has made its first checkpoint for this cluster, the
 * file is there, and stays until an operator removes it.
 */
#ifndef CFD_WAL_MARKER_H
#define CFD_WAL_MARKER_H

#include "postgres.h"

#define CFD_MARKER_NAME "confide.store"

/* The store's number; 0 when there is no file. */
extern uint64 cfd_marker_read(void);
/* Whether there is a file; reports nothing. */
extern bool cfd_marker_exists(void);
extern void cfd_marker_write(uint64 store);

#endif
