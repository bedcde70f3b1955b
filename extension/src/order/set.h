/*
 * set.h
 *	  Messages about sets: rows in the keeper that are ranked in one round
 *	  trip.
 *
 * Does not know what the rows are, nor what the ranks are for.
 *
 * Invariants: rows are sent one-way, so that the keeper reads their values
 * while we fetch more rows; a set that was lost with its channel is never
 * confused with another one; forgetting a set raises no error.
 */
#ifndef CFD_ORDER_SET_H
#define CFD_ORDER_SET_H

#include "postgres.h"
#include "wire/wire.h"

/* A key column: a protected type, or 0 for plain numbers. */
typedef struct CfdRankKey
{
	uint8		type;
	bool		descending;
	bool		nulls_first;
} CfdRankKey;

typedef struct CfdSet
{
	uint32		number;			/* 0: nothing in the keeper */
	uint32		generation;		/* channel generation that has the set */
	uint32		rows;			/* number of rows in the keeper */
	int			columns;
	CfdRankKey	keys[CFD_RANK_COLUMNS_MAX];
} CfdSet;

/* Empties a set and makes the keeper forget its contents. */
extern void cfd_set_reset(CfdSet *set);
/* Adds rows. `words` is stored column by column, column_stride words apart. */
extern void cfd_set_add(CfdSet *set, const uint64 *words, uint32 rows, uint32 column_stride);
/* Whether the keeper still has the rows. */
extern bool cfd_set_alive(const CfdSet *set);
/*
 * Ranks the rows from `first` on; with a nonzero limit, so many rows. Returns
 * a rank for each of these rows, valid until the next call of the keeper. If
 * `done` is set, the set is empty afterwards.
 */
extern const uint32 *cfd_set_rank(CfdSet *set, uint32 first, uint32 limit, bool done);
/*
 * Ranks all rows and empties the set. The ranks are below *distinct. For each
 * rank, *steps has the first column in which it differs from the preceding
 * rank.
 */
extern const uint32 *cfd_set_order(CfdSet *set, const uint8 **steps, uint32 *distinct);

#endif
