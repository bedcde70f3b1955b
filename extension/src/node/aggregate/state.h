/*
 * state.h
 *	  An aggregation while it is executed: what its files share. describe.c says what goes to
 *	  the keeper and registers it, rows.c sends rows, groups.c fetches groups, partial.c hands
 *	  them over and has them merged, explain.c shows, execute.c is the plan node.
 *
 * Invariants: nothing that the keeper sends is believed without a check of its form;
 * each row is aggregated in exactly one pass.
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
/* Rows before the keeper is first asked whether it has rows to hand back. */
#define FIRST_ALLOWANCE (16 * CFD_BATCH_ROWS_MAX)

typedef enum Form
{
	FORM_FID,
	FORM_CONSTANT,				/* one FID for all rows */
	FORM_BOOL,					/* plain boolean */
	FORM_RAW,
	FORM_CELL					/* cells, which the keeper opens */
} Form;

/* An input column. */
typedef struct Column
{
	Form		form;
	uint8		type;			/* type code; 0 if it is not protected */
	int			attribute;		/* of the child's rows; 0: an expression */
	Expr	   *expr;
	ExprState  *state;
	bool		null_only;		/* a raw value of which only NULL matters */
	CfdFid	   *values;
	unsigned char *nulls;		/* raw: 0, 1; booleans: 0, 1, or 2 for NULL */
	CfdCells   *cells;
	CfdFid		constant;
} Column;

/* What an expression of the registration is: a program, or a column by itself. */
typedef struct Source
{
	CfdProgram *program;
	int			column;
} Source;

/* A column of what is fetched. */
typedef struct Output
{
	bool		raw;			/* NULLs stand beside the values */
	bool		count;
	bool		stored;			/* takes a slot */
	bool		cell;			/* given out as a loose cell */
	const CfdWireU64 *values;	/* of the groups that were fetched */
	const uint8 *nulls;			/* raw: which are NULL */
} Output;

typedef struct AggregateState
{
	CustomScanState css;
	CfdAggregateStage stage;
	int			share;			/* how many aggregations share the memory */
	CfdCompiler *compiler;
	CfdCompiler *having_compiler;
	CfdProgram *having;
	CfdProgram *filter;
	List	   *sources;		/* of Source */
	List	   *key_sources;	/* numbers of sources */
	List	   *calls;			/* lists: number, distinct, argument's source or -1, filter's or -1 */
	Column	   *columns;
	int			column_count;
	int			program_columns;	/* the first ones are the programs' inputs */
	Output	   *outputs;
	int			output_count;
	int			stored;
	bool		evaluates;		/* some column is an expression */
	CfdDriver	driver;			/* of the rows of a pass */

	uint32		handle;
	uint32		generation;		/* of the connection the handle is from; 0: none */
	bool		filled;
	bool		done;
	uint64		allowance;
	Tuplestorestate *input;		/* rows of this pass, if it is not the first */
	Tuplestorestate *left;		/* rows for the next pass */
	TupleTableSlot *stored_slot;
	StringInfoData body;
	char	   *groups;			/* the answer with the fetched ones */
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
/* The driver's methods: of rows that may be taken as they are stored, and of any others. */
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
