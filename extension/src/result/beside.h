/*
 * beside.h
 *	  Other protected values of the rows that a result shows.
 *
 * A statement that shows one column of a row is often followed by one that
 * shows another. Where an envelope of a row has to be requested anyway, those
 * of its other columns are requested with it, and kept for later statements
 * (value/delivery.h); they are not sent to the client.
 *
 * Does not decide which of them are requested (envelopes.c).
 *
 * Invariant: only values of rows that a scan has passed on are noted, at most
 * CFD_BESIDE_MAX for a batch of rows.
 */
#ifndef CFD_RESULT_BESIDE_H
#define CFD_RESULT_BESIDE_H

#include "postgres.h"
#include "nodes/execnodes.h"
#include "wire/wire.h"

#define CFD_BESIDE_MAX 32

typedef struct CfdBeside
{
	List	   *scans;			/* scans whose current row is in the row of the plan */
	int			values;
	CfdWireWanted value[CFD_BESIDE_MAX];
} CfdBeside;

/* Finds the scans of a plan; allocates in the current memory context. */
extern void cfd_beside_begin(CfdBeside *beside, PlanState *plan);
/* Notes the values of the scans' current rows. */
extern void cfd_beside_note(CfdBeside *beside);

#endif
