/*
 * schema.h
 *	  Reports of the schema to clients that watch it (the proxy): what a name stands
 *	  for, said over the client's own connection as part of the answers, so that
 *	  the client never has to ask within its transaction. Format: crates/contract/src/report.rs.
 *
 * - log.c: in shared memory, which objects committed transactions have changed
 * - touched.c: what this transaction has changed so far, and what becomes of it
 * - define.c: an object's definition as a record
 * - path.c: the search path that is in effect
 * - watch.c: what is sent, and when
 *
 * Invariant: nothing here takes the transaction's snapshot, or keeps a snapshot when
 * the statement is over.
 */
#ifndef CFD_SCHEMA_H
#define CFD_SCHEMA_H

#include "postgres.h"
#include "lib/stringinfo.h"
#include "nodes/parsenodes.h"

/* Both zero: anything may have changed. */
typedef struct CfdObject
{
	Oid			class;
	Oid			object;
} CfdObject;

/* log.c */
extern void cfd_schema_request_shmem(void);
extern void cfd_schema_init_shmem(void);
/* Committed changes of this database; gives its version since. */
extern uint64 cfd_schema_log(const CfdObject *objects, int count);
extern uint64 cfd_schema_version(void);
/* Names this database in this life of the server: versions of others do not compare. */
extern const char *cfd_schema_identity(void);
/* What has changed behind a version; false: that is not known any more. */
extern bool cfd_schema_since(uint64 version, CfdObject **objects, int *count);

/* touched.c */
extern void cfd_schema_touch(Oid class, Oid object, bool created, bool dropped);
extern bool cfd_schema_touched(void);
/* The objects that have not been given out since they were touched last; false: none. */
extern bool cfd_schema_take(CfdObject *object);
extern bool cfd_schema_pending(void);
/* What a look-up has found. */
extern void cfd_schema_found(const CfdObject *object, bool exists);
extern void cfd_schema_subtransaction(int level, bool commit);
/* The transaction is over; gives the version after it, 0 if nothing changed. */
extern uint64 cfd_schema_end(bool commit);

/* define.c */
/* Appends a record, unless the object does not matter to clients; false: there is no such object. */
extern bool cfd_schema_define(StringInfo out, const CfdObject *object);
extern void cfd_schema_define_gone(StringInfo out, const CfdObject *object);
/* All objects; `full` is called whenever the text has become long. */
extern void cfd_schema_define_all(StringInfo out, void (*full) (StringInfo out));
extern void cfd_schema_field(StringInfo out, const char *text);
extern void cfd_schema_number(StringInfo out, uint64 number);

/* path.c */
/* Whether the search path is what was said last. */
extern bool cfd_schema_path_said(void);
extern void cfd_schema_path(StringInfo out);
/* What was said last need not hold any more. */
extern void cfd_schema_path_forget(void);

/* watch.c */
/* At the end of an outermost statement, or of what else may have changed something. */
extern void cfd_schema_report(void);
/* A statement after parse analysis: a client may ask by way of one that it does not run. */
extern void cfd_schema_asked(const Query *query);
/* Before a transaction commits, while there are still catalogs to read. */
extern void cfd_schema_before_commit(void);
/* Behind the end of a transaction: no catalogs, no errors. */
extern void cfd_schema_ended(bool commit);

#endif
