/*
 * row_order.h
 *	  The order of an index build's rows by all key columns, declassified
 *	  in one step.
 *
 * The keeper returns a rank for each row and, for neighbouring rows, the
 * column that decides their order. From then on, values of these rows are
 * compared without the keeper. Does not keep rows.
 *
 * Invariant: a reported order is the one that the keeper's comparison would
 * give. What cannot be derived from neighbours is unknown: values whose rows
 * differ in an earlier column cannot be compared here.
 */
#ifndef CFD_INDEX_ROW_ORDER_H
#define CFD_INDEX_ROW_ORDER_H

#include "postgres.h"
#include "wire/wire.h"
#include "utils/relcache.h"

typedef struct CfdRowOrder CfdRowOrder;

/*
 * Returns NULL unless the index is a B-tree with a protected key. The order
 * lives as long as the memory context, in the keeper as well.
 */
extern CfdRowOrder *cfd_row_order_create(MemoryContext context, Relation index);
/* Memory per row, in bytes, while the order is computed and used. */
extern Size cfd_row_order_row_size(const CfdRowOrder *order);
/* Adds the keys of a row. */
extern void cfd_row_order_add(CfdRowOrder *order, const Datum *values, const bool *nulls);
/*
 * After the last row: whether all rows must be added once more, in the same
 * order, with cfd_row_order_add_again.
 */
extern bool cfd_row_order_waits(CfdRowOrder *order);
extern void cfd_row_order_add_again(CfdRowOrder *order, const Datum *values, const bool *nulls);
/*
 * Ranks the rows. The result has them in the order in which they were added,
 * and is valid until the keeper's next answer.
 */
extern const uint32 *cfd_row_order_rank(CfdRowOrder *order, uint32 *distinct);
/* Records the rank of a row, so that its values can be compared from now on. */
extern void cfd_row_order_place(CfdRowOrder *order, const Datum *values, const bool *nulls, uint32 rank);
/* Has fetched from memory what comparisons of these values will need. */
extern void cfd_row_order_fetch(const CfdRowOrder *order, const Datum *values);
/* Discards the order and deletes its memory context: the rows will not be ranked. */
extern void cfd_row_order_drop(CfdRowOrder *order);

/* Makes the order known to comparison functions (known/known.h). */
extern void cfd_row_order_tell(CfdRowOrder *order);

#endif
