/*
 * envelopes.h
 *	  Envelopes of the protected values of rows that are about to be written to the
 *	  client: noted in the order in which output functions will ask for them, and
 *	  asked for together.
 *
 * Does not decide which rows are noted, nor keep any.
 *
 * Invariants: a value gets its own envelope or none, also if output functions ask for
 * others in between; a value whose envelope did not come with the others is asked for
 * alone by whoever writes it, so that its error is raised where its row is written.
 */
#ifndef CFD_RESULT_ENVELOPES_H
#define CFD_RESULT_ENVELOPES_H

#include "postgres.h"
#include "access/tupdesc.h"
#include "wire/wire.h"
#include "executor/tuptable.h"

/* So many rows and values, but for the last row's, are asked for together. */
#define CFD_ENVELOPE_ROWS_MAX 4096
#define CFD_ENVELOPE_VALUES_MAX 16384

typedef struct CfdEnvelopes
{
	MemoryContext context;		/* of answers; NULL: nothing is noted here */
	int			columns;		/* protected ones, their numbers and types */
	AttrNumber *numbers;
	uint8	   *types;
	int			values;			/* noted as the request has them */
	int			room;
	CfdWireWanted *asked;
	char	   *answer;
	CfdReader	left;			/* what of it is not used yet */
	int			next;			/* value that is written next */
	bool		remote;			/* all of them go to the client, who opens each */
	struct CfdGiven *given;		/* of few values: from this one on, all; NULL: none */
	int			given_from;
	uint64		period;			/* in which they were asked for */
} CfdEnvelopes;

/* How many columns are protected. */
extern int	cfd_protected_columns(TupleDesc desc);
/* Begins in the current context; answers go to the one given. */
extern void cfd_envelopes_begin(CfdEnvelopes *list, TupleDesc desc, MemoryContext answers, bool remote);
extern void cfd_envelopes_note(CfdEnvelopes *list, TupleTableSlot *slot);
/* Forgets what was noted, and answers. */
extern void cfd_envelopes_clear(CfdEnvelopes *list);
/* The envelope of the value that is written now, if it comes with others. */
extern bool cfd_envelopes_next(CfdEnvelopes *list, CfdFid fid, uint8 type,
							   const char **envelope, uint32 *length);

static inline bool
cfd_envelopes_full(const CfdEnvelopes *list)
{
	return list->values + list->columns > CFD_ENVELOPE_VALUES_MAX;
}

#endif
