/*
 * columns.h
 *	  Columns of a batch as they stand in a message: see crates/contract,
 *	  message/column.rs.
 *
 * Encodes; does not know what the columns are for.
 *
 * Invariant: a column has exactly as many rows as it was given.
 */
#ifndef CFD_WIRE_COLUMNS_H
#define CFD_WIRE_COLUMNS_H

#include "postgres.h"
#include "wire/wire.h"
#include "lib/stringinfo.h"

/* Rows of a batch at most, and what confide.batch_rows makes of it. */
#define CFD_BATCH_ROWS_MAX 4096
extern int	cfd_batch_rows;

/* FIDs, 0 for NULL: as runs where that is shorter, else as a list. */
extern void cfd_put_column(StringInfo body, const CfdFid *fids, int rows);
/* One FID for all rows. */
extern void cfd_put_constant(StringInfo body, CfdFid fid, int rows);
/* A list of FIDs for all rows. */
extern void cfd_put_values(StringInfo body, const CfdFid *fids, int count);
/* Plain booleans: 0, 1, or 2 for NULL. */
extern void cfd_put_bools(StringInfo body, const unsigned char *bools, int rows);
/* Values that are not protected; for each 1 if it is NULL. */
extern void cfd_put_raw(StringInfo body, const uint64 *values, const unsigned char *nulls, int rows);

#endif
