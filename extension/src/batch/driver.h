/*
 * driver.h
 *	  The batch driver: reads rows of a plan in batches, asks the keeper
 *	  about them, and returns them one by one.
 *
 * A buffer holds one batch: the columns needed after the keeper's answer, the
 * inputs of the quals, and the two requests of the batch. The quals are
 * evaluated for rows or, in a semijoin or antijoin, for the pairs of each row.
 * Memory that a row refers to lives until the buffer is emptied.
 *
 * There are two buffers: while the keeper processes one, the other is filled.
 * The first batches are small, and their size doubles, so that a LIMIT costs
 * little; small batches are not read ahead. The next execution starts with the
 * batch size that the last one has reached.
 *
 * A node supplies what to ask and how to process the answer. Unless it is like
 * a scan, it also supplies where rows come from and what to keep of them.
 * Where rows may be left unread, it may let the keeper decide a buffer in
 * pieces. A node that returns no row before it has seen all of them (a sort,
 * an aggregation) sends each batch, marks it as decided without rows to
 * return, and drains the driver.
 *
 * Invariants: rows are returned in the plan's order, each at most once; an
 * error of a row arrives with the answer and is raised when that row is
 * reached, if it is; no request outlives its batch.
 */
#ifndef CFD_BATCH_DRIVER_H
#define CFD_BATCH_DRIVER_H

#include "postgres.h"
#include "batch/inputs.h"
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"
#include "session/channel.h"

/* Number of rows in the first batch, unless batches are limited to fewer. */
#define CFD_BATCH_FIRST_ROWS 32

typedef struct CfdBuffer
{
	int			rows;
	int			capacity;
	int			columns;		/* number of attributes of a row */
	const bool *kept;			/* which of them are kept */
	Datum	  **values;			/* by attribute, then by row */
	bool	  **nulls;
	MemoryContext own;			/* lives as long as the buffer */
	MemoryContext referred;		/* memory that rows refer to */

	bool		paired;			/* quals are evaluated for pairs */
	int			pairs;
	int		   *ends;			/* by row: pairs up to and including it */
	bool		cut;			/* the last row has more pairs */

	CfdInputs  *quals;			/* NULL: no quals */
	CfdInputs  *projected;		/* NULL: no computed columns */
	CfdRequest	filter;
	CfdRequest	project;

	bool		asked;			/* a request about the undecided rows is in progress */
	int			decided;		/* rows for which the keeper has reported whether they pass */
	int		   *passing;		/* numbers of the decided rows that pass */
	int			good;			/* number of those that can be returned */
	int			next;			/* index of the next one to return */
	CfdFid	   *first;			/* first FID of each computed column; the others follow */
	const uint8 **computed_nulls;	/* which are NULL, by row; or NULL if none */
	bool		failed;			/* the row after the good ones failed */
	CfdReadError error;			/* to be raised after the good rows were returned */
} CfdBuffer;

extern void cfd_buffer_init(CfdBuffer *buffer, int columns, const bool *kept, int computed);
extern void cfd_buffer_reserve(CfdBuffer *buffer, int rows);
/* Keeps the row in the slot, which must be deformed. */
extern void cfd_buffer_add(CfdBuffer *buffer, TupleTableSlot *slot);
/* Keeps rows in their stored form. */
extern void cfd_buffer_add_stored(CfdBuffer *buffer, const CfdStored *stored);
/* Number of pairs of all rows before the given one. */
extern int	cfd_buffer_pairs_before(const CfdBuffer *buffer, int row);
/* Stores a row's attributes in a virtual slot. */
extern void cfd_buffer_show(const CfdBuffer *buffer, int row, TupleTableSlot *slot);
/*
 * Whether the batch should end because of the memory its rows refer to, or the
 * size of its cells.
 */
extern bool cfd_buffer_is_full(const CfdBuffer *buffer);
extern void cfd_buffer_empty(CfdBuffer *buffer);

/* Size of an answer in addition to the results per row: head, and most errors. */
#define CFD_ANSWER_BYTES (sizeof(CfdWireRevealed) + 512)

struct CfdDriver;

typedef struct CfdDriverMethods
{
	/* Asks about the undecided rows of a buffer. The callback fills `body`. */
	void		(*ask) (struct CfdDriver *driver, CfdBuffer *buffer);
	/*
	 * Waits for the answer: determines which rows are good and how many are
	 * decided. May send another request.
	 */
	void		(*take) (struct CfdDriver *driver, CfdBuffer *buffer);
	/* Waits for the answer to the request of `take`; may be NULL. */
	void		(*finish) (struct CfdDriver *driver, CfdBuffer *buffer);
	/*
	 * Reads rows into an empty buffer. Returns false if there are no more.
	 * NULL: use `next` and `add`.
	 */
	bool		(*read) (struct CfdDriver *driver, CfdBuffer *buffer);
	/* Returns the next row. NULL: read the child. */
	TupleTableSlot *(*next) (struct CfdDriver *driver);
	/*
	 * Adds and counts a row. Returns false if the batch is full. NULL: fill
	 * the columns and inputs of a scan.
	 */
	bool		(*add) (struct CfdDriver *driver, CfdBuffer *buffer, TupleTableSlot *slot);
	/*
	 * The same for rows in stored form. If `add` is set and this is NULL, rows
	 * come from slots only.
	 */
	void		(*add_stored) (struct CfdDriver *driver, CfdBuffer *buffer);
} CfdDriverMethods;

typedef struct CfdDriver
{
	/* set by the node before cfd_driver_begin */
	const CfdDriverMethods *methods;
	PlanState  *child;
	int			last_attribute; /* last attribute needed from the child's slot */
	int			first_rows;		/* size of the first batch */
	PlanState  *node;			/* the plan node itself */
	/* set by the node at any time */
	bool		reads_ahead;	/* read the next batch while the keeper has this one */
	bool		pauses;			/* do not begin another batch: return NULL */
	bool		asks_ahead;		/* ... and ask about it, because all rows will be wanted */

	CfdBuffer	buffers[2];
	int			current;		/* buffer whose rows are being returned */
	bool		ahead;			/* the other buffer is filled */
	bool		ended;			/* the child has no more rows */
	int			batch_rows;		/* size of the next batch */
	uint64		scanned;		/* rows read from the child since the last rescan */
	CfdStored  *stored;			/* rows in stored form; NULL: from slots only */
	ExprContext *context;		/* expression context for inputs */
	StringInfoData body;
	/* for EXPLAIN ANALYZE */
	uint64		batches;
	uint64		round_trips;
	instr_time	waited;
} CfdDriver;

/*
 * Starts the driver after the buffers were initialised. Rows are taken in
 * stored form if the inputs of rows are attributes only.
 */
extern void cfd_driver_begin(CfdDriver *driver);
/*
 * Rescans the child. `alike` tells that it will again be read to its end if it
 * was now, and has a similar length.
 */
extern void cfd_driver_restart(CfdDriver *driver, bool alike);
extern const char *cfd_driver_await(CfdDriver *driver, CfdRequest *request, uint32 *length);
/* Waits for the results of at most `rows` rows, `width` bytes each. */
extern CfdReadRevealed cfd_driver_await_revealed(CfdDriver *driver, CfdRequest *request, uint32 rows, uint32 width);
extern CfdBuffer *cfd_driver_more(CfdDriver *driver);
/* Asks about all rows, for a node that returns none of them. */
extern void cfd_driver_drain(CfdDriver *driver);

/*
 * Returns the buffer whose row `next` is the next one, or NULL at the end. The
 * caller advances `next`.
 */
static inline CfdBuffer *
cfd_driver_next(CfdDriver *driver)
{
	CfdBuffer  *buffer = &driver->buffers[driver->current];

	return likely(buffer->next < buffer->good) ? buffer : cfd_driver_more(driver);
}

/* Marks a batch that was sent and of which no row is returned. */
static inline void
cfd_buffer_swallow(CfdBuffer *buffer)
{
	buffer->decided = buffer->rows;
	buffer->good = buffer->next = 0;
}

/*
 * Records the error of the first row that is not good. It is raised after the
 * good ones were returned.
 */
static inline void
cfd_buffer_fail(CfdBuffer *buffer, const CfdReadError *error)
{
	buffer->failed = true;
	buffer->error = *error;
}

#endif
