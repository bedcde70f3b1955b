/*
 * slot.h
 *	  The physical replication slot that holds the WAL since the keeper's last
 *	  checkpoint.
 *
 * Invariant: the slot never moves beyond a position that the keeper has
 * confirmed as its checkpoint.
 */
#ifndef CFD_WAL_SLOT_H
#define CFD_WAL_SLOT_H

#include "postgres.h"
#include "access/xlogdefs.h"

#define CFD_SLOT_NAME "confide"

/* Whether the slot exists; where it holds the WAL (0: it has lost it). */
extern bool cfd_slot_find(XLogRecPtr *position);
/* Takes the slot for this process, made anew if there is none, at a position. */
extern void cfd_slot_hold(XLogRecPtr position);
/* Moves the slot that this process holds. */
extern void cfd_slot_move(XLogRecPtr position);

#endif
