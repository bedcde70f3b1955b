/*
 * state.h
 *	  A sort by ranks while it runs: what its files share. rows.c takes rows and has them
 *	  ranked, disk.c sorts what does not fit into memory, node.c is the plan node.
 *
 * Invariants: the order is that of the Sort this node stands for, but for equal
 * rows; the keeper is told of no row that PostgreSQL would not have sorted.
 */
#ifndef CFD_NODE_SORT_STATE_H
#define CFD_NODE_SORT_STATE_H

#include "postgres.h"
#include "batch/driver.h"
#include "nodes/execnodes.h"
#include "order/plain_sort.h"
#include "order/set.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

/* Rows whose keys are sent at a time. */
#define SEND_ROWS 4096
/* The largest LIMIT for which rows are dropped as they come. */
#define BOUND_MAX 32768
/* Rows between two questions for the first ones. */
#define BOUND_ROWS 8192

/* A sort column of the query. */
typedef struct Key
{
	AttrNumber	column;
	Oid			plain;			/* type if not protected */
	bool		number;			/* whose values can be told as numbers */
	uint8		cell;			/* code of the type if values are in cells, which are opened one-way */
	CfdPlainSort *sort;			/* of those that cannot */
	const uint32 *ranks;		/* what it has found, by row */
	Oid			operator;
	Oid			collation;
	bool		descending;
	bool		nulls_first;
} Key;

typedef struct CfdSortState
{
	CustomScanState css;
	/* what the plan says */
	int			key_count;
	Key		   *keys;
	List	   *bounds;			/* ExprStates of count and offset */
	bool		random_access;
	bool		waits;			/* for ranks of plain keys */
	/* what has been done */
	bool		done;
	bool		ended;			/* read past the last row */
	bool		mark_ended;
	int64		bound;			/* 0: none */
	CfdDriver	driver;			/* of the child's rows, or of those that are there */
	bool		again;			/* rows that are there are gone through again */
	MemoryContext context;		/* everything below */
	CfdSet		set;
	uint32		taken;			/* rows whose keys have been looked at */
	uint32		row;			/* rows whose keys are sent, or wait to be */
	uint64	   *words;			/* keys not sent yet, column by column */
	uint32		word_rows;
	uint32		word_room;
	MinimalTuple *rows;			/* in memory */
	uint32		count;
	uint32		room;
	Size		used;
	uint32	   *order;			/* places of rows in the output */
	bool	   *same;			/* whether the row at a place equals the one before; or NULL */
	int64		at;				/* rows given */
	int64		mark;
	uint16		comparison;		/* signature, if the only key is protected; or 0 */
	int64		told;			/* place of the row that nodes above were told of last */
	CfdFid		last;			/* its key, or 0 */
	CfdFid		first;			/* that of the first row that equals the one before it */
	bool		last_same;		/* it equals the one before */
	Tuplestorestate *store;		/* what did not fit into memory */
	bool		compares;		/* too many rows to be ranked */
	Tuplesortstate *sorter;
	TupleTableSlot *wide;		/* rank and row */
	TupleTableSlot *kept;		/* a row in memory */
	TupleTableSlot *spilled;	/* a row from the sorter */
	/* for EXPLAIN */
	int64		ranked;
	int64		round_trips;
} CfdSortState;

static inline CfdSortState *
cfd_sort_of(CfdDriver *driver)
{
	return (CfdSortState *) ((char *) driver - offsetof(CfdSortState, driver));
}

/* rows.c */
extern void cfd_sort_begin_plain_sorts(CfdSortState *state);
extern void cfd_sort_end_plain_sorts(CfdSortState *state);
extern const uint32 *cfd_sort_ask(CfdSortState *state, uint32 limit);
extern const CfdDriverMethods cfd_sort_driver;
extern void cfd_sort_take_rows(CfdSortState *state);

/* disk.c */
extern void cfd_sort_by_rank(CfdSortState *state);
/* PostgreSQL's sort of the rows as they are. */
extern void cfd_sort_by_comparison(CfdSortState *state);
extern TupleTableSlot *cfd_sort_next_spilled(CfdSortState *state, bool forward);

#endif
