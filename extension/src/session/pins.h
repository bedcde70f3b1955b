/*
 * pins.h
 *	  What backends tell the garbage collector in shared memory.
 *
 * A backend announces that it holds FIDs which neither a page nor a snapshot
 * keeps alive, and reports the progress of its own collection. Such FIDs
 * belong to rows that are about to be written (promoted, but not on a page
 * yet), are held by cursors WITH HOLD and procedures, which may outlive the
 * transaction that read them, or are in statistics by which a query is being
 * planned, which ANALYZE may replace meanwhile.
 *
 * Invariants: an announcement costs two writes to the backend's own cache line
 * and never fails; it ends with the transaction, the statement or the backend.
 */
#ifndef CFD_SESSION_PINS_H
#define CFD_SESSION_PINS_H

#include "postgres.h"

/* Phases as shown in the view. */
typedef enum CfdGcPhase
{
	CFD_GC_IDLE,
	CFD_GC_WAITING,				/* waiting for concurrent writers */
	CFD_GC_TABLE,
	CFD_GC_INDEXES,
	CFD_GC_STATISTICS,
	CFD_GC_PLANNERS,			/* waiting for queries that are being planned */
	CFD_GC_SWEEPING
} CfdGcPhase;

typedef struct CfdGcProgress
{
	int			pid;
	Oid			database;
	Oid			relation;
	CfdGcPhase	phase;
	uint64		pages_total;	/* of the table and its indexes */
	uint64		pages_done;
	uint64		found;			/* FIDs found */
	uint64		swept;			/* values swept */
} CfdGcProgress;

extern void cfd_pins_request_shmem(void);
extern void cfd_pins_init_shmem(void);

/* To be called before a promotion, and after the row is on its page. */
extern void cfd_pin_writer(void);
extern void cfd_unpin_writer(void);
/* Pins until a whole batch of rows is on its pages. Batches do not nest. */
extern void cfd_hold_writer(void);
extern bool cfd_writer_held(void);
extern void cfd_release_writer(void);
/* The transaction at this nesting level was aborted, and its writes with it. */
extern void cfd_abort_writer(int level);

/*
 * From here on FIDs may be held beyond the end of the transaction;
 * cfd_unpin_holder ends that.
 */
extern void cfd_pin_holder(void);
extern void cfd_unpin_holder(void);
extern bool cfd_is_holder(void);

/*
 * Waits until every row write that is under way now has finished. Returns
 * false if that takes longer than limit_ms.
 */
extern bool cfd_wait_for_writers(int limit_ms);
/*
 * A query is being planned by statistics that were valid when this was called. Calls
 * do not nest.
 */
extern void cfd_pin_planner(void);
extern void cfd_unpin_planner(void);
/* Waits until every planning of another backend that is under way now has ended. As above. */
extern bool cfd_wait_for_planners(int limit_ms);

/* Process ID of a backend of this database that holds FIDs, or 0. */
extern int	cfd_any_holder(void);

/*
 * Number of sweeps so far. A backend that caches anything by FID, such as a
 * position in an index, must discard it when the number changes, since the FID
 * may name another value by then. The number changes before any swept slot is
 * reused.
 */
extern uint64 cfd_sweeps(void);
extern void cfd_note_sweep(void);

/* This backend's own progress. Set single fields; zero everything at the end. */
extern volatile CfdGcProgress *cfd_gc_progress(void);
/* Copies the progress of the n-th backend. Returns false if there are no more. */
extern bool cfd_gc_progress_of(int n, CfdGcProgress *copy);

#endif
