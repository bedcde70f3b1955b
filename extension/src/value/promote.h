/*
 * promote.h
 *	  Promotion: copying temporary values into the partitions of columns,
 *	  which gives them permanent FIDs.
 *
 * Does not touch tuples (tableam/slots.h).
 *
 * Invariant 1 of the design: the redo record of a promotion precedes the heap
 * record. Callers therefore call cfd_promote, which writes the redo record,
 * before they call heap.
 */
#ifndef CFD_VALUE_PROMOTE_H
#define CFD_VALUE_PROMOTE_H

#include "postgres.h"
#include "value/types.h"
#include "wire/wire.h"
#include "utils/relcache.h"

/*
 * One promotion in the format of the message. The result replaces `fid`. If
 * `type` is set and this session is likely to read the column, the keeper's
 * answer includes an envelope, which is cached (delivery.h).
 */
typedef struct CfdPromotion
{
	uint64		fid;
	uint32		partition;
	uint8		type;			/* 0: no envelope */
	uint8		zero[3];
} CfdPromotion;

/* A protected column, or one of arrays of protected values. */
typedef struct CfdColumn
{
	int			index;			/* attribute number - 1 */
	uint32		partition;		/* 0 until it has been opened */
	uint8		type;			/* of an array, its elements' */
} CfdColumn;

/*
 * Positions (attribute number - 1) of the special columns of a ledger table or
 * its history.
 */
typedef struct CfdLedgerPlaces
{
	CfdLedgerRole role;
	bool		alone;			/* no other column is generated, and these may be NULL */
	int			sn;
	int			valid_from;
	int			by;
	int			valid_to;		/* history only, as is ended_by */
	int			ended_by;
} CfdLedgerPlaces;

/* The protected columns of a relation. */
typedef struct CfdColumns
{
	uint32		generation;		/* channel generation that opened the partitions; 0: none */
	uint32		log;			/* partition of a ledger table's log */
	uint32		log_generation;	/* channel generation that opened it; 0: none */
	CfdLedgerPlaces ledger;
	Oid			history;		/* what was a ledger table's history when it was last opened; 0: not known */
	bool		plain_keys;		/* known to have no index with a protected key */
	int			count;
	int			arrays;			/* columns of arrays, which follow the others */
	CfdColumn	column[FLEXIBLE_ARRAY_MEMBER];
} CfdColumns;

/* Whether the relation has columns that hold FIDs. */
static inline bool
cfd_holds_fids(const CfdColumns *columns)
{
	return columns->count + columns->arrays > 0;
}

/*
 * The relation's protected columns. Valid until the next call or the next
 * relcache invalidation.
 */
extern const CfdColumns *cfd_columns(Relation relation);
/* As cfd_columns, with the partitions opened. */
extern const CfdColumns *cfd_open_columns(Relation relation);
/*
 * As cfd_open_columns, but asks the keeper again, so that changes to a column
 * are written to the WAL.
 */
extern void cfd_reopen_columns(Relation relation);
/*
 * Partition for what an index's expression makes of a table's columns, by the
 * name and attribute number for such values (index/derived.c).
 */
extern uint32 cfd_open_derived(Relation relation, const char *column, int attribute, int32 typmod, uint8 type);
/* Partition of a ledger table's log. */
extern uint32 cfd_open_log(Relation relation);
/* Promotes values and writes the redo record. Relation NULL: constants in catalogs. */
extern void cfd_promote(Relation relation, CfdPromotion *items, int count);
/*
 * Promotes the few values of a row and, in the same round trip, searches index
 * pages for their positions. `body` holds `searches` searches of `values`
 * values in the format of the message. Returns the positions, valid until the
 * next call, or NULL if they are not known.
 */
extern const CfdWirePlace *cfd_promote_searching(Relation relation, CfdPromotion *items, int count,
												 uint32 searches, uint32 values, const char *body, int length);
/* Writes the redo record of a promotion to the WAL. An empty record is skipped. */
extern void cfd_log_promotion(Relation relation, const char *record, uint32 length);
/* Copies a value into the partition of constants in catalogs. */
extern CfdFid cfd_make_constant(CfdFid fid, uint8 type);

#endif
