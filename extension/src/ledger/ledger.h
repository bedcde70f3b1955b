/*
 * ledger.h
 *	  Ledger tables: each row version has a number, a time and an author,
 *	  and an entry in the keeper's log of the table (docs/ledger.md).
 *
 * A ledger table is a table with a column of type ledger_sn, and its history
 * is a table with a column of type ledger_past_sn, so that a dump preserves
 * the property. The history is the table <name>_history in the same schema.
 *
 * Invariants: a row is written with the number, time and author of its entry;
 * a version that was replaced or deleted is in the history; a transaction
 * commits only if its entries are in the WAL.
 */
#ifndef CFD_LEDGER_LEDGER_H
#define CFD_LEDGER_LEDGER_H

#include "postgres.h"
#include "access/htup_details.h"
#include "datatype/timestamp.h"
#include "executor/execdesc.h"
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "storage/itemptr.h"
#include "storage/lock.h"
#include "utils/relcache.h"
#include "value/promote.h"

/* Suffixes of a table's name. */
#define CFD_LEDGER_HISTORY_SUFFIX "_history"
#define CFD_LEDGER_VIEW_SUFFIX "_ledger"
#define CFD_LEDGER_AUDIT_SUFFIX "_audit"

/*
 * rows.c. These functions may be called for any table, and do nothing unless
 * it is a ledger table.
 */

/* A version that is about to be replaced or deleted. */
typedef struct CfdLedgerBefore
{
	TupleTableSlot *version;	/* a copy; NULL: not needed */
	Relation	history;		/* where it will be moved to; NULL: not known yet */
	TupleTableSlot *past;		/* the row there */
} CfdLedgerBefore;

/* Copies the version. */
extern CfdLedgerBefore cfd_ledger_before(Relation relation, ItemPointer old);
/*
 * Sets number, time and author of rows before they are written. "before" is the
 * version that the only row replaces, or NULL; its row of the history is made,
 * too.
 */
extern void cfd_ledger_stamp(Relation relation, TupleTableSlot **slots, int count, CfdLedgerBefore *before);
/* To be called after they were written. Moves the version before. */
extern void cfd_ledger_written(Relation relation, TupleTableSlot **slots, int count, CfdLedgerBefore *before);
/* To be called after a version was deleted. Moves it. */
extern void cfd_ledger_deleted(Relation relation, CfdLedgerBefore *before);
/* Frees the result of cfd_ledger_before. */
extern void cfd_ledger_free(CfdLedgerBefore *before);

/* The number of a row version. */
extern int64 cfd_ledger_number(Relation relation, TupleTableSlot *slot);

/*
 * described.c: what the keeper is told of a table once for a channel. Valid until another one is
 * asked for.
 */
typedef struct CfdDescribedColumn
{
	int16		position;		/* among the columns told; -1: dropped, or a ledger's own */
	uint8		code;			/* 0: not protected */
} CfdDescribedColumn;

typedef struct CfdDescribed
{
	uint32		place;			/* its number in messages */
	uint32		generation;		/* channel generation that was told; 0: none */
	char	   *text;			/* the table's schema and name, then the columns */
	uint32		length;
	uint32		names_length;	/* of schema and name */
	CfdDescribedColumn column[FLEXIBLE_ARRAY_MEMBER];
} CfdDescribed;

/* `relation` is the table or its history: the columns are its. */
extern CfdDescribed *cfd_ledger_describe(Relation table, Relation relation);

/* numbers.c: a number that no version in this database has had. */
extern int64 cfd_ledger_new_number(void);
extern void cfd_numbers_request_shmem(void);
extern void cfd_numbers_init_shmem(void);

/* message.c: sends a row version. */
extern void cfd_ledger_send(Relation table, Relation relation, TupleTableSlot *slot, CfdWireLedgerRow *head);
/* Sends a message without columns. */
extern void cfd_ledger_send_end(Relation table, CfdWireLedgerRow *head);
extern char *cfd_ledger_names(Relation table, uint32 *length);
/* Appends a text with its terminating zero byte. */
extern void cfd_ledger_append_text(StringInfo body, const char *text);

/*
 * computed.c: relations whose generated columns are not computed while a
 * statement writes to them.
 */
#define CFD_UNCOMPUTED_MAX 8
typedef struct CfdUncomputed
{
	int			count;
	Relation	relation[CFD_UNCOMPUTED_MAX];
} CfdUncomputed;

extern void cfd_ledger_uncompute(const QueryDesc *query, CfdUncomputed *of);
/* Raises no error. */
extern void cfd_ledger_recompute(const CfdUncomputed *of);
/* Then closes them. An abort does it by itself. */
extern void cfd_ledger_uncompute_end(const CfdUncomputed *of);

/* transaction.c: what this transaction did. */

/* Name of the client. */
extern const char *cfd_ledger_principal(void);
/* Time of the transaction's first operation. */
extern TimestampTz cfd_ledger_time(void);
/* Allocates the number of the next operation. */
extern uint64 cfd_ledger_next(void);
/* To be called when it was sent. */
extern void cfd_ledger_row_sent(void);
extern void cfd_ledger_before_commit(void);
extern void cfd_ledger_before_prepare(void);
extern void cfd_ledger_ended(bool committed);
extern void cfd_ledger_subtransaction(int level, bool committed);

/*
 * How many more protected values may go to histories in this transaction
 * without waiting for the keeper.
 */
extern int	cfd_ledger_moves_left(void);
/*
 * Tells the keeper which leased FIDs values of the version get that the last
 * operation has ended.
 */
extern void cfd_ledger_tell_moved(const CfdWireMoved *moved, int count);

/* history.c */
extern Oid	cfd_ledger_history(Relation table);
extern Relation cfd_ledger_table_of(Relation relation);
/* Makes the row of the history. */
extern void cfd_ledger_prepare(Relation table, CfdLedgerBefore *before, TimestampTz until);
/* Inserts it. */
extern void cfd_ledger_move(const CfdLedgerBefore *before);
/* Whether a row of a history is being written by Confide. */
extern bool cfd_ledger_moving;
/* Opens the history of a table. Raises an error if there is none. */
extern Relation cfd_ledger_open_history(Relation table, LOCKMODE lock);

/* erase.c: whether the running statement erases versions in this history. */
extern bool cfd_ledger_may_erase(Relation history);
/* Reports that it has erased one. */
extern void cfd_ledger_erased(Relation history, int64 sn);
/* To be called at the end of a statement: records what it erased in the audit table. */
extern void cfd_ledger_erase_end(void);
/* To be called at the end of the transaction or subtransaction of this level. */
extern void cfd_ledger_erase_forget(int level);

/*
 * signed.c: the columns of a query to be signed, and the ledger tables they
 * come from. The query has tableoid and ctid of each such table after its own
 * columns.
 */
#define CFD_SIGNED_SOURCES_MAX 16
typedef struct CfdSignedSources
{
	const char *query;
	int			columns;		/* number of its own columns */
	int			count;			/* number of tables */
	uint8		of[MaxTupleAttributeNumber + 1];	/* by column: its table's number from 1, or 0 */
} CfdSignedSources;

/* To be filled in by parse analysis; NULL: not wanted. */
extern CfdSignedSources *cfd_signed_sources;

#endif
