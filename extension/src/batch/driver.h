/*
 * driver.h
 *	  Rows by the batch: reads rows of a plan, has the keeper asked about them, and gives
 *	  them out one by one.
 *
 * A buffer has a batch: the columns that are needed once the keeper has answered, the inputs of
 * the quals, and the two requests that go with it. Quals are of the rows, or, of a semi or anti
 * join, of each row's pairs. What a row refers to lives until the buffer is emptied.
 *
 * Two buffers take turns: while the keeper has one, the other is filled. The first batches are
 * small, and each is twice as large as the one before, so that a LIMIT costs little; small
 * ones are not read ahead of. What one execution has taught of the number of rows, the next begins with.
 *
 * A node supplies what it asks, and what it does with an answer; and, where it is not like a scan, where
 * rows come from and what is kept of them. It may have the keeper decide a buffer in pieces, where rows
 * may be left unread. A node that gives out no row before it has seen all (a sort, an aggregation)
 * sends each batch, takes it as decided without a row that could be given, and drains the driver.
 *
 * Invariants: rows come in the plan's order, each at most once; an error of a row comes with the
 * answer and is raised when the row's turn comes, if it does; no request outlives its batch.
 */
#ifndef CFD_BATCH_DRIVER_H
#define CFD_BATCH_DRIVER_H

#include "postgres.h"
#include "batch/inputs.h"
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"
#include "session/channel.h"

/* Rows of the first batch, if batches may have so many. */
#define CFD_BATCH_FIRST_ROWS 32

typedef struct CfdBuffer
{
	int			rows;
	int			capacity;
	int			columns;		/* attributes of a row */
	const bool *kept;			/* which of them are kept */
	Datum	  **values;			/* by attribute, then by row */
	bool	  **nulls;
	MemoryContext own;			/* what lives as long as the buffer */
	MemoryContext referred;		/* what rows refer to */

	bool		paired;			/* quals are of pairs: */
	int			pairs;
	int		   *ends;			/* those of each row and of the rows before it */
	bool		cut;			/* there are more of the last row */

	CfdInputs  *quals;			/* NULL: there are none */
	CfdInputs  *projected;		/* NULL: nothing is computed */
	CfdRequest	filter;
	CfdRequest	project;

	bool		asked;			/* the keeper is asked about the rows after these: */
	int			decided;		/* rows of which the keeper has told whether they pass */
	int		   *passing;		/* numbers of those of them that pass */
	int			good;			/* those that can be given out, of them ... */
	int			next;			/* ... this one next */
	CfdFid	   *first;			/* of each computed column; one after the other */
	const uint8 **computed_nulls;	/* which of them are NULL, by row; or NULL */
	bool		failed;			/* the row after the good ones has an error: */
	CfdReadError error;			/* raised once the good ones are given out */
} CfdBuffer;

extern void cfd_buffer_init(CfdBuffer *buffer, int columns, const bool *kept, int computed);
extern void cfd_buffer_reserve(CfdBuffer *buffer, int rows);
/* Keeps a row of the slot, which is deformed. */
extern void cfd_buffer_add(CfdBuffer *buffer, TupleTableSlot *slot);
/* Keeps rows as they are stored. */
extern void cfd_buffer_add_stored(CfdBuffer *buffer, const CfdStored *stored);
/* Pairs of all rows before one. */
extern int	cfd_buffer_pairs_before(const CfdBuffer *buffer, int row);
/* Puts a row's attributes into a virtual slot. */
extern void cfd_buffer_show(const CfdBuffer *buffer, int row, TupleTableSlot *slot);
/* Whether rows refer to so much, or have so large cells, that the batch should end. */
extern bool cfd_buffer_is_full(const CfdBuffer *buffer);
extern void cfd_buffer_empty(CfdBuffer *buffer);

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
	/* Reads rows into an empty buffer; false: there are no more. NULL: `next` and `add` do. */
	bool		(*read) (struct CfdDriver *driver, CfdBuffer *buffer);
	/* The next row; NULL: the child's. */
	TupleTableSlot *(*next) (struct CfdDriver *driver);
	/* Adds a row and counts it; false: the batch is full. NULL: the columns and inputs of a scan. */
	bool		(*add) (struct CfdDriver *driver, CfdBuffer *buffer, TupleTableSlot *slot);
	/* The same of rows as they are stored; NULL where `add` is not: from slots only. */
	void		(*add_stored) (struct CfdDriver *driver, CfdBuffer *buffer);
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
	uint64		round_trips;
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
/* Has all rows asked about, of a node that gives out none of them. */
extern void cfd_driver_drain(CfdDriver *driver);

/* The buffer whose row `next` is the next one; NULL at the end. The caller counts it. */
static inline CfdBuffer *
cfd_driver_next(CfdDriver *driver)
{
	CfdBuffer  *buffer = &driver->buffers[driver->current];

	return likely(buffer->next < buffer->good) ? buffer : cfd_driver_more(driver);
}

/* A batch that was sent, and of which no row is given out. */
static inline void
cfd_buffer_swallow(CfdBuffer *buffer)
{
	buffer->decided = buffer->rows;
	buffer->good = buffer->next = 0;
}

/* The error of the first row that is not good, raised once the good ones are given out. */
static inline void
cfd_buffer_fail(CfdBuffer *buffer, const CfdReadError *error)
{
	buffer->failed = true;
	buffer->error = *error;
}

#endif
