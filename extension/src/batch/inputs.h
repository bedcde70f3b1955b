/*
 * inputs.h
 *	  Columns of rows: the inputs of programs, evaluated row by row or read from the pages on
 *	  which rows lie, and brought into a message.
 *
 * Attributes at constant offsets are read from a page column by column, without taking a row
 * apart, and the rows of a page all at once. Which rows there are, and in which order, the child
 * says: the rest of a page is taken only from a plain sequential scan, which goes on after what
 * was taken. Rows that are not as expected (NULLs, short ones) are left to the child's slot.
 *
 * Does not know programs; rows are numbered by the caller.
 *
 * Invariants: a column has a value for each row that cfd_inputs_row was called for; rows from pages
 * are the same, with the same values, as slot by slot from the child.
 */
#ifndef CFD_BATCH_INPUTS_H
#define CFD_BATCH_INPUTS_H

#include "postgres.h"
#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "batch/cells.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"
#include "program/compile.h"
#include "wire/wire.h"

typedef struct CfdStored
{
	int			last_attribute; /* that is asked for */
	TupleDesc	described;		/* whose offsets are known */
	int			fixed;			/* attributes before the first of varying length */
	int		   *offsets;		/* of these */
	int			count;			/* rows taken, and their attributes' begin */
	const char *rows[MaxHeapTuplesPerPage];
} CfdStored;

extern CfdStored *cfd_stored_create(int last_attribute);
/*
 * Takes the child's row and up to most - 1 that follow on its page. How many: 0 if
 * the row must be read from the slot. They stay until the child is asked again.
 */
extern int	cfd_stored_take(CfdStored *stored, PlanState *child, TupleTableSlot *slot, int most);
/* An attribute of the rows taken. */
extern void cfd_stored_fids(const CfdStored *stored, AttrNumber attribute, CfdFid *out);
extern void cfd_stored_datums(const CfdStored *stored, AttrNumber attribute, Datum *out);
extern void cfd_stored_bools(const CfdStored *stored, AttrNumber attribute, unsigned char *out);

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
	bool		cell;			/* values are in cells: */
	CfdCells   *cells;			/* those of the rows; NULL if constant, which is opened at once */
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
/* The next row is the first one. */
extern void cfd_inputs_empty(CfdInputs *inputs);
/* Bytes that the cells of the rows take. */
extern Size cfd_inputs_bytes(const CfdInputs *inputs);
/* The columns of so many rows, encoded. */
extern void cfd_inputs_put(const CfdInputs *inputs, StringInfo body, int from, int rows);

#endif
