/*
 * columns.h
 *	  Encoding of a batch's columns into a message body.
 *
 * The layout is defined in crates/contract, message/column.rs. This module
 * only encodes; it does not know what the columns are used for.
 *
 * Invariant: an encoded column has exactly the number of rows that was passed
 * in.
 */
#ifndef CFD_WIRE_COLUMNS_H
#define CFD_WIRE_COLUMNS_H

#include "postgres.h"
#include "wire/wire.h"
#include "lib/stringinfo.h"

/*
 * Maximum number of rows in a batch; the setting confide.batch_rows can only
 * lower it.
 */
#define CFD_BATCH_ROWS_MAX 4096
extern int	cfd_batch_rows;

/*
 * Appends a column of FIDs, 0 standing for NULL. It is run-length encoded
 * where that is shorter, and a plain list otherwise.
 */
extern void cfd_put_column(StringInfo body, const CfdFid *fids, int rows);
/* Appends a column that has the same FID in every row. */
extern void cfd_put_constant(StringInfo body, CfdFid fid, int rows);
/*
 * Appends a list of FIDs that applies to every row, such as the elements of an
 * array.
 */
extern void cfd_put_values(StringInfo body, const CfdFid *fids, int count);
/* Appends a column of unprotected booleans: 0, 1, or 2 for NULL. */
extern void cfd_put_bools(StringInfo body, const unsigned char *bools, int rows);
/* Appends a column of unprotected values; nulls[i] is 1 where values[i] is NULL. */
extern void cfd_put_raw(StringInfo body, const uint64 *values, const unsigned char *nulls, int rows);

#endif
