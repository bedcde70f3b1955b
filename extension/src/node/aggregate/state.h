/*
 * state.h
 *	  Execution state of an aggregation, shared by its files.
 *
 * describe.c defines what is sent to the keeper and registers it; rows.c sends
 * rows; groups.c fetches groups; partial.c hands them over and has them
 * merged; explain.c implements EXPLAIN; execute.c is the plan node.
 *
 * Invariants: the form of everything that the keeper sends is checked; each
 * row is aggregated in exactly one pass.
 */
#ifndef CFD_NODE_AGGREGATE_STATE_H
#define CFD_NODE_AGGREGATE_STATE_H

#include "postgres.h"

#include "wire/columns.h"
#include "wire/wire.h"
#include "lib/stringinfo.h"
#include "node/aggregate/aggregate.h"
#include "nodes/execnodes.h"
#include "batch/cells.h"
#include "batch/driver.h"
#include "cell/cell.h"
#include "ops/evaluate.h"
#include "value/types.h"
#include "program/compile.h"
#include "portability/instr_time.h"
#include "utils/tuplestore.h"

#define FETCH_GROUPS 1024
/* Number of rows after which the keeper is first asked for rows to be returned. */
#define FIRST_ALLOWANCE (16 * CFD_BATCH_ROWS_MAX)

typedef enum Form
{
	FORM_FID,
	FORM_CONSTANT,				/* one FID for all rows */
	FORM_BOOL,					/* plain boolean */
	FORM_RAW,
	FORM_CELL					/* cells, opened by the keeper */
} Form;

/* An input column. */
typedef struct Column
{
	Form		form;
	uint8		type;			/* type code; 0: not protected */
	int			attribute;		/* attribute of the child's rows; 0: an expression */
	Expr	   *expr;
	ExprState  *state;
	bool		null_only;		/* a raw value of which only NULL matters */
	CfdFid	   *values;
	unsigned char *nulls;		/* raw: 0 or 1; booleans: 0, 1, or 2 for NULL */
	CfdCells   *cells;
	CfdFid		constant;
} Column;

/* An expression of the registration: a program, or a column. */
typedef struct Source
{
	CfdProgram *program;
	int			column;
} Source;

/* A column of the fetched groups. */
typedef struct Output
{
	bool		raw;			/* has separate NULL flags */
	bool		count;
	bool		stored;			/* is stored in a slot */
	bool		cell;			/* returned as a loose cell */
	const CfdWireU64 *values;	/* of the fetched groups */
	const uint8 *nulls;			/* raw: NULL flags */
	CfdWireU64	untold;			/* where the keeper has stored the only result */
} Output;

typedef struct AggregateState
{
	CustomScanState css;
	CfdAggregateStage stage;
	int			share;			/* number of aggregations that share the memory */
	CfdCompiler *compiler;
	CfdCompiler *having_compiler;
	CfdProgram *having;
	CfdProgram *filter;
	List	   *sources;		/* list of Source */
	List	   *key_sources;	/* numbers in `sources` */
	List	   *calls;			/* lists: number, distinct, sources of argument and filter or -1 */
	Column	   *columns;
	int			column_count;
	int			program_columns;	/* the first columns, which are inputs of programs */
	Output	   *outputs;
	int			output_count;
	int			stored;
	bool		kept;			/* the keeper keeps the results untold */
	bool		evaluates;		/* some column is an expression */
	CfdDriver	driver;			/* reads the rows of a pass */

	uint32		handle;
	uint32		generation;		/* channel generation of the handle; 0: none */
	bool		filled;
	bool		done;
	uint64		allowance;
	Tuplestorestate *input;		/* rows of this pass, unless it is the first */
	Tuplestorestate *left;		/* rows for the next pass */
	TupleTableSlot *stored_slot;
	StringInfoData body;
	char	   *groups;			/* answer with the fetched groups */
	int			group_count;
	int			group;
	uint32		flags;

	/* for EXPLAIN ANALYZE */
	uint64		total_rows;
	uint64		total_groups;
	uint64		total_bytes;
	uint64		total_merged;
	int			passes;
} AggregateState;

static inline CfdFid
fid_of(Datum value, bool isnull)
{
	CfdFid		fid = isnull ? 0 : DatumGetUInt64(value);

	if (unlikely(fid == 0 && !isnull))
		cfd_invalid_fid();
	return fid;
}

static inline AggregateState *
cfd_aggregate_of(CfdDriver *driver)
{
	return (AggregateState *) ((char *) driver - offsetof(AggregateState, driver));
}

/* describe.c */
extern void cfd_aggregate_describe(AggregateState *state, CustomScan *plan);
extern void cfd_aggregate_open(AggregateState *state);
extern const char *cfd_aggregate_call(AggregateState *state, uint16 kind, const void *body, uint32 length, uint32 *answer_length);
/* rows.c */
/* Driver methods for rows that may be taken in stored form, and for other rows. */
extern const CfdDriverMethods cfd_aggregate_stored_driver;
extern const CfdDriverMethods cfd_aggregate_driver;
extern void cfd_aggregate_check(const AggregateState *state);
extern void cfd_aggregate_fill(AggregateState *state);
extern void cfd_aggregate_take_back(AggregateState *state);
extern void cfd_aggregate_store(AggregateState *state, const CfdReadAggregateReturnAnswer *answer);
/* groups.c */
extern TupleTableSlot *cfd_aggregate_next(ScanState *node);
/* partial.c */
extern TupleTableSlot *cfd_partial_next(ScanState *node);
extern void cfd_partial_store(AggregateState *state, const char *answer, uint32 length);
extern void cfd_partial_merge_all(AggregateState *state);
/* explain.c */
extern void cfd_aggregate_explain(CustomScanState *node, List *ancestors, struct ExplainState *es);

#endif
