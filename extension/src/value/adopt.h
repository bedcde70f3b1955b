/*
 * adopt.h
 *	  Rows whose values the client has fitted to their columns: they get leased
 *	  FIDs, and no statement waits for the keeper (docs/durability.md, "Leased
 *	  identifiers").
 *
 * Does not touch tuples (tableam/slots.h).
 *
 * Invariants: a value is sent to the keeper before its record is in the WAL,
 * and both before its row; no transaction commits or is prepared before the
 * keeper has confirmed its values.
 */
#ifndef CFD_VALUE_ADOPT_H
#define CFD_VALUE_ADOPT_H

#include "postgres.h"
#include "value/promote.h"

/*
 * Gives permanent FIDs to the temporary values of rows, as cfd_promote does,
 * and writes the records. Returns false, with nothing done, if they have to be
 * promoted. The caller has pinned the writer. The relation's columns may be
 * freed, and have to be opened again.
 */
extern bool cfd_adopt(Relation relation, CfdPromotion *items, int count);
/*
 * Gives values leased FIDs of their columns; the caller sends the values. Returns
 * false, with nothing done, if none are leased. The relation's columns may be
 * freed.
 */
extern bool cfd_lease(Relation relation, CfdPromotion *items, int count);
/* To be called before a commit or PREPARE: waits for the keeper if the transaction has adopted values. */
extern void cfd_adopt_before_commit(void);
/* The channel's keeper has confirmed all of them, asked otherwise. */
extern void cfd_adopt_confirmed(void);
/* Whether the keeper may have an error of an adopted value that was not reported. */
extern bool cfd_adopt_unconfirmed(void);
/* Whether the channel's keeper can confirm what the transaction has adopted. */
extern bool cfd_adopt_confirmable(void);
/* The transaction has ended. */
extern void cfd_adopt_ended(void);
extern void cfd_adopt_init(void);

#endif
