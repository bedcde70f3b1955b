/*
 * envelopes.h
 *	  Envelopes of the protected values in rows that are about to be sent
 *	  to the client.
 *
 * Values are noted in the order in which the output functions will ask for
 * them, and their envelopes are fetched in one round trip. Does not decide
 * which rows are noted, and keeps no rows.
 *
 * Invariants: a value gets its own envelope or none, even if output functions
 * ask for other values in between; a value without an envelope in the batch is
 * requested alone when it is written, so that its error is raised at its own
 * row.
 */
#ifndef CFD_RESULT_ENVELOPES_H
#define CFD_RESULT_ENVELOPES_H

#include "postgres.h"
#include "access/tupdesc.h"
#include "wire/wire.h"
#include "executor/tuptable.h"
#include "result/beside.h"

/* Limits of one request. The last row may exceed the number of values. */
#define CFD_ENVELOPE_ROWS_MAX 4096
#define CFD_ENVELOPE_VALUES_MAX 16384

typedef struct CfdEnvelopes
{
	MemoryContext context;		/* memory context of answers; NULL: not active */
	int			columns;		/* protected columns, with their numbers and types */
	AttrNumber *numbers;
	uint8	   *types;
	bool	   *cells;			/* whether they are of the family rnd_ */
	int			values;			/* values noted, in the format of the request */
	int			room;
	CfdWireWanted *asked;
	char	   *answer;
	CfdReader	left;			/* unread rest of the answer */
	int			next;			/* next value to be written */
	bool		remote;			/* all values go to the client, which opens each one */
	struct CfdGiven *given;		/* envelopes of a small result from given_from on; NULL: none */
	int			given_from;
	uint64		period;			/* delivery period in which they were requested */
	const CfdBeside *beside;	/* other values of the rows; NULL: unknown */
} CfdEnvelopes;

/* Number of protected columns. */
extern int	cfd_protected_columns(TupleDesc desc);
/* Number of columns whose cells are opened for the session's client. */
extern int	cfd_cell_columns(TupleDesc desc);
/*
 * Starts a list in the current memory context; answers are allocated in
 * `answers`. `cells`: rows are written with their cells opened.
 */
extern void cfd_envelopes_begin(CfdEnvelopes *list, TupleDesc desc, MemoryContext answers, bool remote, bool cells);
extern void cfd_envelopes_note(CfdEnvelopes *list, TupleTableSlot *slot);
/* Copies a row into a virtual slot, with its cells opened; allocates in the current memory context. */
extern void cfd_envelopes_open_cells(const CfdEnvelopes *list, TupleTableSlot *row, TupleTableSlot *out);
/* Forgets the noted values and their envelopes. */
extern void cfd_envelopes_clear(CfdEnvelopes *list);
/*
 * Gets the envelope of the value being written. Returns false if it must be
 * requested alone.
 */
extern bool cfd_envelopes_next(CfdEnvelopes *list, CfdFid fid, uint8 type,
							   const char **envelope, uint32 *length);

static inline bool
cfd_envelopes_full(const CfdEnvelopes *list)
{
	return list->values + list->columns > CFD_ENVELOPE_VALUES_MAX;
}

#endif
