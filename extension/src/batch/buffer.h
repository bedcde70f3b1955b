/*
 * buffer.h
 *	  A batch of rows: the columns that are needed once the keeper has answered, the
 *	  inputs of the quals, and the two requests that go with a batch. Quals are of the
 *	  rows, or, of a semi or anti join, of each row's pairs.
 *
 * Holds rows; what is computed with them is node.c's business.
 *
 * Invariant: what a row refers to lives until the buffer is emptied.
 */
#ifndef CFD_BATCH_BUFFER_H
#define CFD_BATCH_BUFFER_H

#include "postgres.h"
#include "session/channel.h"
#include "executor/tuptable.h"
#include "batch/stored.h"
#include "batch/inputs.h"

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
/* Whether rows refer to so much that the batch should end. */
extern bool cfd_buffer_is_full(const CfdBuffer *buffer);
extern void cfd_buffer_empty(CfdBuffer *buffer);

#endif
