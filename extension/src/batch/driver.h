/*
 * driver.h
 *	  Rows by the batch: reads rows of a plan, has the keeper asked about them, and gives
 *	  them out one by one.
 *
 * Two buffers take turns: while the keeper has one, the other is filled. The first batches are
 * small, and each is twice as large as the one before, so that a LIMIT costs little; small
 * ones are not read ahead of. What one execution has taught of the number of rows, the next begins with.
 *
 * A node supplies what it asks, and what it does with an answer. It may have the keeper decide a
 * buffer in pieces, where rows may be left unread.
 *
 * Invariants: rows come in the plan's order, each at most once; an error of a row comes with the
 * answer and is raised when the row's turn comes, if it does; no request outlives its batch.
 */
#ifndef CFD_BATCH_DRIVER_H
#define CFD_BATCH_DRIVER_H

#include "postgres.h"
#include "batch/buffer.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"

/* Bytes of an answer beside what is told of rows: head, and most errors. */
#define CFD_ANSWER_BYTES (sizeof(CfdWireRevealed) + 512)

struct CfdDriver;

typedef struct CfdDriverMethods
{
	/* Asks about the rows of a buffer that are not decided yet; `body` is there to be filled. */
	void		(*ask) (struct CfdDriver *driver, CfdBuffer *buffer);
	/* Awaits the answer: which rows are good, and how many are decided; perhaps asks once more. */
	void		(*take) (struct CfdDriver *driver, CfdBuffer *buffer);
	/* Awaits the answer to what `take` has asked; NULL: nothing. */
	void		(*finish) (struct CfdDriver *driver, CfdBuffer *buffer);
	/* Reads rows into an empty buffer; false: there are no more. NULL: rows of the child. */
	bool		(*read) (struct CfdDriver *driver, CfdBuffer *buffer);
} CfdDriverMethods;

typedef struct CfdDriver
{
	/* set by the node, before the driver begins */
	const CfdDriverMethods *methods;
	PlanState  *child;
	int			last_attribute; /* of the child's slot, that is needed */
	int			first_rows;		/* of the first batch */
	PlanState  *node;			/* the node itself */
	/* set by the node, whenever it likes */
	bool		reads_ahead;	/* the next batch may be read while the keeper has this one */
	bool		asks_ahead;		/* ... and be asked about: all rows will be wanted */

	CfdBuffer	buffers[2];
	int			current;		/* buffer whose rows are given out */
	bool		ahead;			/* the other one is filled */
	bool		ended;			/* the child has no more rows */
	int			batch_rows;		/* of the next batch */
	uint64		scanned;		/* rows of the child since it began anew */
	CfdStored  *stored;			/* rows as they are stored; NULL: from slots only */
	ExprContext *context;		/* of what inputs evaluate */
	StringInfoData body;
	/* for EXPLAIN ANALYZE */
	uint64		batches;
	uint64		exchanges;
	instr_time	waited;
} CfdDriver;

/*
 * Begins, once buffers are made. Rows are taken as they are stored if the inputs of rows are
 * attributes only.
 */
extern void cfd_driver_begin(CfdDriver *driver);
/* The child begins anew. `alike`: it will be read to its end, if it was now, and is about as long. */
extern void cfd_driver_restart(CfdDriver *driver, bool alike);
extern const char *cfd_driver_await(CfdDriver *driver, CfdRequest *request, uint32 *length);
/* Awaits what is revealed of `rows` rows at most, `width` bytes each. */
extern CfdReadRevealed cfd_driver_await_revealed(CfdDriver *driver, CfdRequest *request, uint32 rows, uint32 width);
extern CfdBuffer *cfd_driver_more(CfdDriver *driver);

/* The buffer whose row `next` is the next one; NULL at the end. The caller counts it. */
static inline CfdBuffer *
cfd_driver_next(CfdDriver *driver)
{
	CfdBuffer  *buffer = &driver->buffers[driver->current];

	return likely(buffer->next < buffer->good) ? buffer : cfd_driver_more(driver);
}

/* The error of the first row that is not good, raised once the good ones are given out. */
static inline void
cfd_buffer_fail(CfdBuffer *buffer, const CfdReadError *error)
{
	buffer->failed = true;
	buffer->error = *error;
}

#endif
