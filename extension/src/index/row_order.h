/*
 * row_order.h
 *	  The order of an index build's rows by all of their key columns, declassified at once: a
 *	  rank for each row, and between neighbours the column that decides. From then on values
 *	  of these rows are compared without the keeper.
 *
 * Does not keep rows.
 *
 * Invariant: an order that is given is the one the keeper's comparison would give; what
 * neighbours do not tell is not known: values whose rows differ in an earlier column do not
 * compare here.
 */
#ifndef CFD_INDEX_ROW_ORDER_H
#define CFD_INDEX_ROW_ORDER_H

#include "postgres.h"
#include "wire/wire.h"
#include "utils/relcache.h"

typedef struct CfdRowOrder CfdRowOrder;

/*
 * Of a B-tree with a protected key; else NULL. Lives as long as the memory context, in the
 * keeper too.
 */
extern CfdRowOrder *cfd_row_order_create(MemoryContext context, Relation index);
/* Memory that a row takes while the order is made, and is known. */
extern Size cfd_row_order_row_size(const CfdRowOrder *order);
/* Takes the keys of a row. */
extern void cfd_row_order_add(CfdRowOrder *order, const Datum *values, const bool *nulls);
/* After the last row: whether all of them must be added once more, in the same order. */
extern bool cfd_row_order_waits(CfdRowOrder *order);
extern void cfd_row_order_add_again(CfdRowOrder *order, const Datum *values, const bool *nulls);
/* Ranks the rows, in the order in which they were added; valid until the keeper's next answer. */
extern const uint32 *cfd_row_order_rank(CfdRowOrder *order, uint32 *distinct);
/* Tells the rank of a row, whose values compare from then on. */
extern void cfd_row_order_place(CfdRowOrder *order, const Datum *values, const bool *nulls, uint32 rank);
/* Forgets everything, and frees the memory context: the rows will not be ranked. */
extern void cfd_row_order_drop(CfdRowOrder *order);

/* Comparison functions are told of it (known/known.h). */
extern void cfd_row_order_tell(CfdRowOrder *order);

#endif
