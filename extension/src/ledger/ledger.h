/*
 * ledger.h
 *	  Ledger tables: every row version has a number, a time and an author, and an entry in the
 *	  keeper's log of the table (docs/ledger.md).
 *
 * A ledger table is one with a column of type ledger_sn, its history one with a column of type
 * ledger_past_sn: so dumps have what makes them ledger tables. The history is the table
 * <name>_history of the same schema.
 *
 * Invariants: a row is written with the number, time and author that its entry has; a version
 * that is replaced or deleted is in the history; a transaction commits only if its
 * entries are in the WAL.
 */
#ifndef CFD_LEDGER_LEDGER_H
#define CFD_LEDGER_LEDGER_H

#include "postgres.h"
#include "access/htup_details.h"
#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "storage/itemptr.h"
#include "storage/lock.h"
#include "utils/relcache.h"
#include "value/promote.h"

/* What follows a table's name. */
#define CFD_LEDGER_HISTORY_SUFFIX "_history"
#define CFD_LEDGER_VIEW_SUFFIX "_ledger"
#define CFD_LEDGER_AUDIT_SUFFIX "_audit"

/* rows.c: rows of any table may come here; those of others pass. */

/* A version that is about to be replaced or deleted; NULL where nobody needs it. */
extern TupleTableSlot *cfd_ledger_before(Relation relation, ItemPointer old);
/* Gives rows their numbers, time and author, before they are written. */
extern void cfd_ledger_stamp(Relation relation, TupleTableSlot **slots, int count, TupleTableSlot *before);
/* They were written. Frees what cfd_ledger_before gave. */
extern void cfd_ledger_written(Relation relation, TupleTableSlot **slots, int count, TupleTableSlot *before);
/* A version was deleted. Frees it. */
extern void cfd_ledger_deleted(Relation relation, TupleTableSlot *before);

/* The number of a row version. */
extern int64 cfd_ledger_number(Relation relation, TupleTableSlot *slot);

/* message.c: a row as a message. */
extern void cfd_ledger_send(Relation table, Relation relation, TupleTableSlot *slot, CfdWireLedgerRow *head);
/* Without columns. */
extern void cfd_ledger_send_end(Relation table, CfdWireLedgerRow *head);
extern char *cfd_ledger_names(Relation table, uint32 *length);
/* Schema and name of a table, each with its zero byte. */
extern void cfd_ledger_append_text(StringInfo body, const char *text);

/* transaction.c: what this transaction did. */

/* The client's name. */
extern const char *cfd_ledger_principal(void);
/* When it did the first of it. */
extern TimestampTz cfd_ledger_time(void);
/* Numbers one more thing done. */
extern uint64 cfd_ledger_next(void);
extern void cfd_ledger_before_commit(void);
extern void cfd_ledger_before_prepare(void);
extern void cfd_ledger_ended(bool committed);
extern void cfd_ledger_subtransaction(int level, bool committed);

/* history.c */
extern Oid	cfd_ledger_history(Relation table);
extern Relation cfd_ledger_table_of(Relation relation);
extern void cfd_ledger_move(Relation table, TupleTableSlot *before, TimestampTz until);
/* Whether a row of a history is being written by us. */
extern bool cfd_ledger_moving;
/* The history of a table; an error if there is none. */
extern Relation cfd_ledger_open_history(Relation table, LOCKMODE lock);

/* erase.c: whether the statement that runs erases versions of this history */
extern bool cfd_ledger_may_erase(Relation history);
/* It has erased one. */
extern void cfd_ledger_erased(Relation history, int64 sn);
/* A statement has ended: what it has erased comes into the audit. */
extern void cfd_ledger_erase_end(void);
/* The transaction of this level, or the savepoint, has ended. */
extern void cfd_ledger_erase_forget(int level);

/*
 * signed.c: which columns of a query, whose result shall be signed, are of which table that is a
 * ledger. Behind its own columns the query has tableoid and ctid of each such table.
 */
#define CFD_SIGNED_SOURCES_MAX 16
typedef struct CfdSignedSources
{
	const char *query;
	int			columns;		/* its own */
	int			count;			/* of tables */
	uint8		of[MaxTupleAttributeNumber + 1];	/* of each column: number of its table from 1 on, or 0 */
} CfdSignedSources;

/* What analysis shall fill in; NULL: nothing is asked. */
extern CfdSignedSources *cfd_signed_sources;

#endif
