/*
 * promote.h
 *	  Copies of temporary values in columns' partitions: their permanent FIDs.
 *
 * Does not touch tuples (tableam/slots.h).
 *
 * Invariant 1 of the design: the redo record of a promotion precedes the heap
 * record; so whoever promotes calls cfd_promote, which logs, and only then heap.
 */
#ifndef CFD_VALUE_PROMOTE_H
#define CFD_VALUE_PROMOTE_H

#include "postgres.h"
#include "value/types.h"
#include "wire/wire.h"
#include "utils/relcache.h"

/*
 * One promotion, as it stands in a message; `fid` becomes the permanent one. With the column's type an envelope comes
 * with it if the session is likely to read it, and is kept (delivery.h).
 */
typedef struct CfdPromotion
{
	uint64		fid;
	uint32		partition;
	uint8		type;			/* 0: no envelope */
	uint8		zero[3];
} CfdPromotion;

/* A protected column of a relation. */
typedef struct CfdColumn
{
	int			index;			/* attribute number - 1 */
	uint32		partition;		/* 0 until it is opened */
	uint8		type;
} CfdColumn;

/* Where a ledger table, or the history of one, has its own columns: attribute numbers - 1. */
typedef struct CfdLedgerPlaces
{
	CfdLedgerRole role;
	int			sn;
	int			valid_from;
	int			by;
	int			valid_to;		/* of the history only */
	int			ended_by;
} CfdLedgerPlaces;

/* The protected columns of a relation. */
typedef struct CfdColumns
{
	uint32		generation;		/* of the channel that opened the partitions; 0: none */
	uint32		log;			/* partition of a ledger table's log */
	uint32		log_generation;	/* of the channel that opened it; 0: none */
	CfdLedgerPlaces ledger;
	int			count;
	CfdColumn	column[FLEXIBLE_ARRAY_MEMBER];
} CfdColumns;

/* Protected columns; valid until the next call, or while the catalogs are left alone. */
extern const CfdColumns *cfd_columns(Relation relation);
/* As above, with their partitions. */
extern const CfdColumns *cfd_open_columns(Relation relation);
/* As above, asking the keeper once more: what is new of a column goes into the WAL. */
extern void cfd_reopen_columns(Relation relation);
/* Of a ledger table: the partition of its log. */
extern uint32 cfd_open_log(Relation relation);
/* Relation NULL: constants in catalogs. */
extern void cfd_promote(Relation relation, CfdPromotion *items, int count);
/*
 * The same of a row's few values, and where they belong in pages of indexes: `searches` of them, with `values`
 * values, as they stand in the message. NULL: that is not known. The places stay until the next call.
 */
extern const CfdWirePlace *cfd_promote_searching(Relation relation, CfdPromotion *items, int count,
												 uint32 searches, uint32 values, const char *body, int length);
/* Writes the redo record of a promotion into the WAL; it may be empty. */
extern void cfd_log_promotion(Relation relation, const char *record, uint32 length);
/* Copies a value into the partition of constants in catalogs. */
extern CfdFid cfd_make_constant(CfdFid fid, uint8 type);

#endif
