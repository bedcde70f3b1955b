/*
 * slot.h
 *	  The physical replication slot that holds the WAL since the keeper's last
 *	  checkpoint.
 *
 * A base backup has no slots. So PostgreSQL's recovery holds the WAL from where it
 * begins by a slot of another name, until the keeper has been met and has told its
 * checkpoint: recovery may end, and a checkpoint remove the WAL, before that.
 *
 * Invariant: the slot never moves beyond a position that the keeper has
 * confirmed as its checkpoint.
 */
#ifndef CFD_WAL_SLOT_H
#define CFD_WAL_SLOT_H

#include "postgres.h"
#include "access/xlogdefs.h"

#define CFD_SLOT_NAME "confide"
#define CFD_SLOT_OF_RECOVERY "confide_recovery"

/* Whether the slot exists; where it holds the WAL (0: it has lost it). */
extern bool cfd_slot_find(XLogRecPtr *position);
/* The slot that holds the WAL for the keeper, be it that of recovery; NULL: none does. */
extern const char *cfd_slot_that_holds(XLogRecPtr *position);
/* Takes the slot for this process, made anew if there is none, at a position. */
extern void cfd_slot_hold(XLogRecPtr position);
/* Moves the slot that this process holds. */
extern void cfd_slot_move(XLogRecPtr position);
/* PostgreSQL's recovery begins: holds the WAL from here if no slot does. */
extern void cfd_slot_hold_for_recovery(XLogRecPtr position);

#endif
