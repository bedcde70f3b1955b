/*
 * state.h
 *	  Execution state of a sort by ranks, shared by its files: rows.c reads
 *	  rows and has them ranked, disk.c sorts what does not fit into memory,
 *	  node.c is the plan node.
 *
 * Invariants: the order is that of the Sort that the node replaces, except
 * among equal rows; the keeper learns of no row that PostgreSQL would not have
 * sorted.
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

/* Number of rows whose keys are sent in one message. */
#define SEND_ROWS 4096
/* Largest LIMIT for which surplus rows are dropped while rows arrive. */
#define BOUND_MAX 32768
/* Number of rows between two requests for the first ones. */
#define BOUND_ROWS 8192

/* A sort column of the query. */
typedef struct Key
{
	AttrNumber	column;
	Oid			plain;			/* type if not protected */
	bool		number;			/* values can be sent as numbers */
	uint8		cell;			/* type code if values are in cells, which are opened one-way */
	CfdPlainSort *sort;			/* for other plain keys */
	const uint32 *ranks;		/* the ranks it found, by row */
	Oid			operator;
	Oid			collation;
	bool		descending;
	bool		nulls_first;
} Key;

typedef struct CfdSortState
{
	CustomScanState css;
	/* from the plan */
	int			key_count;
	Key		   *keys;
	List	   *bounds;			/* ExprStates of count and offset */
	bool		random_access;
	bool		waits;			/* for ranks of plain keys */
	/* progress */
	bool		done;
	bool		ended;			/* read past the last row */
	bool		mark_ended;
	int64		bound;			/* 0: none */
	CfdDriver	driver;			/* reads the child's rows, or rows already stored */
	bool		again;			/* stored rows are read a second time */
	MemoryContext context;		/* memory of everything below */
	CfdSet		set;
	uint32		taken;			/* rows whose keys were examined */
	uint32		row;			/* rows whose keys were sent or wait to be sent */
	uint64	   *words;			/* keys to be sent, column by column */
	uint32		word_rows;
	uint32		word_room;
	MinimalTuple *rows;			/* in memory */
	uint32		count;
	uint32		room;
	Size		used;
	uint32	   *order;			/* positions of rows in the output */
	bool	   *same;			/* by position: equals the preceding row; or NULL */
	int64		at;				/* number of rows returned */
	int64		mark;
	uint16		comparison;		/* signature if the only key is protected, or 0 */
	int64		told;			/* position of the last row announced to nodes above */
	CfdFid		last;			/* its key, or 0 */
	CfdFid		first;			/* key of the first row that equals the preceding one */
	bool		last_same;		/* it equals the preceding row */
	Tuplestorestate *store;		/* rows that did not fit into memory */
	bool		compares;		/* too many rows to be ranked */
	Tuplesortstate *sorter;
	TupleTableSlot *wide;		/* rank and row */
	TupleTableSlot *kept;		/* a row in memory */
	TupleTableSlot *spilled;	/* a row from the tuplesort */
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
/* Sorts the rows by comparing their values. */
extern void cfd_sort_by_comparison(CfdSortState *state);
extern TupleTableSlot *cfd_sort_next_spilled(CfdSortState *state, bool forward);

#endif
