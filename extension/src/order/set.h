/*
 * set.h
 *	  Sets of rows in the keeper that are ranked in one round trip: the messages.
 *
 * Does not know whose rows they are, nor what the ranks are for.
 *
 * Invariants: rows are one-way messages, so the keeper reads their values while
 * we fetch more rows; a set that a closed channel took with it is never taken for
 * another; forgetting a set raises no error.
 */
#ifndef CFD_ORDER_SET_H
#define CFD_ORDER_SET_H

#include "postgres.h"
#include "wire/wire.h"

/* A key column: a protected type, or 0 for numbers that the database knows. */
typedef struct CfdRankKey
{
	uint8		type;
	bool		descending;
	bool		nulls_first;
} CfdRankKey;

typedef struct CfdSet
{
	uint32		number;			/* 0: nothing in the keeper */
	uint32		generation;		/* of the channel that the set is at */
	uint32		rows;			/* in the keeper */
	int			columns;
	CfdRankKey	keys[CFD_RANK_COLUMNS_MAX];
} CfdSet;

/* Empties a set of ours; what the keeper has of it is forgotten. */
extern void cfd_set_reset(CfdSet *set);
/* Adds rows: words column by column, column_stride words apart. */
extern void cfd_set_add(CfdSet *set, const uint64 *words, uint32 rows, uint32 column_stride);
/* Whether the keeper still has the rows. */
extern bool cfd_set_alive(const CfdSet *set);
/*
 * Ranks the rows from `first` on; with a limit, so many. The answer has one rank
 * for each of these rows and stays valid until the next call of the keeper. If
 * `done` the set is empty afterwards.
 */
extern const uint32 *cfd_set_rank(CfdSet *set, uint32 first, uint32 limit, bool done);
/*
 * Ranks all rows and empties the set. Beside the ranks, all of them less than `distinct`, tells
 * for each rank the first column in which it differs from the one before.
 */
extern const uint32 *cfd_set_order(CfdSet *set, const uint8 **steps, uint32 *distinct);

#endif
