/*
 * pins.h
 *	  What backends tell a collection of garbage, in shared memory: that they hold
 *	  FIDs which neither a page nor a snapshot keeps alive; and how far their own
 *	  collection is.
 *
 * Such FIDs are those of a row that is about to be written (promoted, and on no page
 * yet), and those in cursors WITH HOLD and in procedures, which may outlive the
 * transaction that read them.
 *
 * Invariants: telling costs two writes to a line of one's own, and never fails; what
 * is told ends with the transaction, the statement or the backend.
 */
#ifndef CFD_SESSION_PINS_H
#define CFD_SESSION_PINS_H

#include "postgres.h"

/* For a view. */
typedef enum CfdGcPhase
{
	CFD_GC_IDLE,
	CFD_GC_WAITING,				/* for writers */
	CFD_GC_TABLE,
	CFD_GC_INDEXES,
	CFD_GC_STATISTICS,
	CFD_GC_SWEEPING
} CfdGcPhase;

typedef struct CfdGcProgress
{
	int			pid;
	Oid			database;
	Oid			relation;
	CfdGcPhase	phase;
	uint64		pages_total;	/* of table and indexes */
	uint64		pages_done;
	uint64		found;			/* FIDs */
	uint64		swept;			/* values */
} CfdGcProgress;

extern void cfd_pins_request_shmem(void);
extern void cfd_pins_init_shmem(void);

/* Before a promotion; and after the row is on its page. */
extern void cfd_pin_writer(void);
extern void cfd_unpin_writer(void);
/* Pins until a whole batch of rows is on its pages; not while another batch is held. */
extern void cfd_hold_writer(void);
extern bool cfd_writer_held(void);
extern void cfd_release_writer(void);
/* The transaction of this nesting level has failed, and all that was written in it. */
extern void cfd_abort_writer(int level);

/* FIDs may be held across the end of a transaction from now on; or not any more. */
extern void cfd_pin_holder(void);
extern void cfd_unpin_holder(void);
extern bool cfd_is_holder(void);

/*
 * Waits until every row that was being written when this was called has been; false
 * if that takes longer than the limit.
 */
extern bool cfd_wait_for_writers(int limit_ms);
/* A backend of this database that holds FIDs, 0 without any. */
extern int	cfd_any_holder(void);

/*
 * Counts sweeps. A backend that remembers something by FID (a place in an index) must
 * forget it when this has changed: the FID may be another value's. It changes before
 * any slot that was swept is used again.
 */
extern uint64 cfd_sweeps(void);
extern void cfd_note_sweep(void);

/* This backend's own. Set a field, or all to zero at the end. */
extern volatile CfdGcProgress *cfd_gc_progress(void);
/* A copy of that of the n-th backend; false when there are no more. */
extern bool cfd_gc_progress_of(int n, CfdGcProgress *copy);

#endif
