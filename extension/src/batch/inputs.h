/*
 * inputs.h
 *	  Input columns of programs. They are evaluated row by row, or read
 *	  from the pages that contain the rows, and encoded into a message.
 *
 * Attributes at constant offsets are read from a page column by column,
 * without deforming tuples, and for all rows of a page at once. The child
 * determines the rows and their order: more rows of a page are taken only from
 * a plain sequential scan, which continues after them. Rows that do not have
 * the expected form (NULLs, too few attributes) are read from the child's
 * slot.
 *
 * Does not know programs. The caller numbers the rows.
 *
 * Invariants: a column has a value for every row passed to cfd_inputs_row;
 * rows taken from pages are the same, with the same values, as those read slot
 * by slot from the child.
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
	int			last_attribute; /* last attribute that is needed */
	TupleDesc	described;		/* descriptor for which `offsets` is valid */
	int			fixed;			/* attributes before the first of variable length */
	int		   *offsets;		/* offsets of these */
	int			count;			/* number of rows taken; start of the data of each */
	const char *rows[MaxHeapTuplesPerPage];
} CfdStored;

extern CfdStored *cfd_stored_create(int last_attribute);
/*
 * Takes the child's row and up to most - 1 rows that follow on its page.
 * Returns their number, or 0 if the row must be read from the slot. They are
 * valid until the child is executed again.
 */
extern int	cfd_stored_take(CfdStored *stored, PlanState *child, TupleTableSlot *slot, int most);
/* Read an attribute of the rows taken. */
extern void cfd_stored_fids(const CfdStored *stored, AttrNumber attribute, CfdFid *out);
extern void cfd_stored_datums(const CfdStored *stored, AttrNumber attribute, Datum *out);
extern void cfd_stored_bools(const CfdStored *stored, AttrNumber attribute, unsigned char *out);

typedef struct CfdInputColumn
{
	uint8		type;			/* 0: plain boolean */
	bool		constant;
	AttrNumber	attribute;		/* attribute of the slot; 0: evaluate */
	ExprState  *state;
	CfdFid	   *fids;			/* by row; only the first if constant */
	unsigned char *bools;		/* ... if it is a plain boolean */
	bool		list;			/* a list for all rows: its elements */
	int			elements;
	bool		cell;			/* values are in cells */
	CfdCells   *cells;			/* cells of the rows; NULL if constant (opened at once) */
} CfdInputColumn;

typedef struct CfdInputs
{
	int			count;
	int			capacity;		/* in rows */
	int			last_attribute; /* last attribute to be deformed in the slot */
	bool		evaluates;		/* some input is not a plain attribute */
	bool		constants_known;
	MemoryContext context;
	CfdInputColumn *columns;
} CfdInputs;

/*
 * Allocated in the current memory context. Vars refer to the slot that
 * contains the row.
 */
extern CfdInputs *cfd_inputs_create(const CfdCompiler *compiler, PlanState *parent);
extern void cfd_inputs_reserve(CfdInputs *inputs, int rows);
/* To be called when parameters may have changed. */
extern void cfd_inputs_forget_constants(CfdInputs *inputs);
/* The slot must be deformed, and be the scan tuple of the context as well. */
extern void cfd_inputs_row(CfdInputs *inputs, TupleTableSlot *slot, ExprContext *context, int row);
/*
 * Adds rows in stored form, starting at `row`. Only possible if nothing but
 * constants is evaluated.
 */
extern void cfd_inputs_stored(CfdInputs *inputs, const CfdStored *stored, ExprContext *context, int row);
/* Starts again with the first row. */
extern void cfd_inputs_empty(CfdInputs *inputs);
/* Size of the cells of all rows. */
extern Size cfd_inputs_bytes(const CfdInputs *inputs);
/* Encodes the columns of `rows` rows, starting at `from`. */
extern void cfd_inputs_put(const CfdInputs *inputs, StringInfo body, int from, int rows);

#endif
