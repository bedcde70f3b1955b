/*
 * inputs.h
 *	  Inputs of programs during execution: evaluates them row by row into columns, and
 *	  brings the columns into a message.
 *
 * Does not know programs; rows are numbered by the caller.
 *
 * Invariant: a column has a value for each row that cfd_inputs_row was called for.
 */
#ifndef CFD_BATCH_INPUTS_H
#define CFD_BATCH_INPUTS_H

#include "postgres.h"
#include "wire/wire.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"
#include "batch/stored.h"
#include "program/compile.h"

typedef struct CfdInputColumn
{
	uint8		type;			/* 0: plain boolean */
	bool		constant;
	AttrNumber	attribute;		/* of the slot; 0: to be evaluated */
	ExprState  *state;
	CfdFid	   *fids;			/* rows; only the first if constant */
	unsigned char *bools;		/* ... of a plain boolean */
	bool		list;			/* a list for all rows: its elements */
	int			elements;
} CfdInputColumn;

typedef struct CfdInputs
{
	int			count;
	int			capacity;		/* rows */
	int			last_attribute; /* the slot must have these deformed */
	bool		evaluates;		/* some input is more than an attribute */
	bool		constants_known;
	MemoryContext context;
	CfdInputColumn *columns;
} CfdInputs;

/* In the current context. Vars are attributes of the slot that rows come in. */
extern CfdInputs *cfd_inputs_create(const CfdCompiler *compiler, PlanState *parent);
extern void cfd_inputs_reserve(CfdInputs *inputs, int rows);
/* Parameters may have changed. */
extern void cfd_inputs_forget_constants(CfdInputs *inputs);
/* The slot, deformed, is the scan tuple of the context, too. */
extern void cfd_inputs_row(CfdInputs *inputs, TupleTableSlot *slot, ExprContext *context, int row);
/* Rows as they are stored, from a row on; only where nothing is evaluated but constants. */
extern void cfd_inputs_stored(CfdInputs *inputs, const CfdStored *stored, ExprContext *context, int row);
/* The columns of so many rows, encoded. */
extern void cfd_inputs_put(const CfdInputs *inputs, StringInfo body, int from, int rows);

#endif
