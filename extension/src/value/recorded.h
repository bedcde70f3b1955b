/*
 * recorded.h
 *	  What the keeper is told while it records, so that statements can be
 *	  replayed with the rows that they saw.
 */
#ifndef CFD_VALUE_RECORDED_H
#define CFD_VALUE_RECORDED_H

#include "postgres.h"

#include "executor/execdesc.h"

/* Tells the snapshot of a statement that begins. */
extern void cfd_recorded_statement(const QueryDesc *query);
/* Tells that a statement has ended of which that was told. */
extern void cfd_recorded_end(const QueryDesc *query);
/* Tells the position in the WAL at which FIDs are freed. */
extern void cfd_recorded_position(void);

#endif
