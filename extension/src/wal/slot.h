/*
 * slot.h
 *	  The physical replication slot that retains the WAL since the keeper's
 *	  last checkpoint.
 *
 * A base backup contains no slots. PostgreSQL's redo therefore retains the WAL
 * from its start with a slot of another name, until the keeper has connected
 * and reported its checkpoint; recovery may end, and a checkpoint remove the
 * WAL, before that.
 *
 * Invariant: the slot never advances beyond a position that the keeper has
 * confirmed as its checkpoint.
 */
#ifndef CFD_WAL_SLOT_H
#define CFD_WAL_SLOT_H

#include "postgres.h"
#include "access/xlogdefs.h"

#define CFD_SLOT_NAME "confide"
#define CFD_SLOT_OF_RECOVERY "confide_recovery"

/*
 * Whether the slot exists. Sets *position to where it retains WAL (0: it has
 * lost its WAL).
 */
extern bool cfd_slot_find(XLogRecPtr *position);
/*
 * Name of the slot that retains WAL for the keeper, possibly that of recovery;
 * NULL: none.
 */
extern const char *cfd_slot_that_holds(XLogRecPtr *position);
/* Acquires the slot for this process at a position, creating it if necessary. */
extern void cfd_slot_hold(XLogRecPtr position);
/* Advances the slot held by this process. */
extern void cfd_slot_move(XLogRecPtr position);
/*
 * To be called when redo starts: retains the WAL from here on, unless a slot
 * already does.
 */
extern void cfd_slot_hold_for_recovery(XLogRecPtr position);

#endif
