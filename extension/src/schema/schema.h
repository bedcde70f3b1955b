/*
 * schema.h
 *	  Schema reports to clients that watch the schema (the proxy).
 *
 * A report describes what names mean. It is sent over the client's own
 * connection among the responses, so that the client never has to query the
 * catalogs within its transaction. Format: crates/contract/src/report.rs.
 *
 * - log.c: objects changed by committed transactions, in shared memory
 * - touched.c: objects changed by this transaction, and the fate of the
 *   changes
 * - define.c: an object's definition as a record
 * - path.c: the effective search path
 * - kept.c: whether the session has anything that cannot be rebuilt
 * - owner.c: the client that this process serves
 * - watch.c: what is sent, and when
 *
 * Invariant: nothing here takes the transaction's snapshot, or keeps a
 * snapshot beyond the end of the statement.
 */
#ifndef CFD_SCHEMA_H
#define CFD_SCHEMA_H

#include "postgres.h"
#include "lib/stringinfo.h"
#include "nodes/parsenodes.h"

/* Both fields 0: anything may have changed. */
typedef struct CfdObject
{
	Oid			class;
	Oid			object;
} CfdObject;

/* log.c */
extern void cfd_schema_request_shmem(void);
extern void cfd_schema_init_shmem(void);
/* Logs committed changes in this database. Returns its new version. */
extern uint64 cfd_schema_log(const CfdObject *objects, int count);
extern uint64 cfd_schema_version(void);
/*
 * Identifies this database since server start. Versions under another identity
 * cannot be compared.
 */
extern const char *cfd_schema_identity(void);
/* Lists what has changed after a version. Returns false if that is no longer known. */
extern bool cfd_schema_since(uint64 version, CfdObject **objects, int *count);

/* touched.c */
extern void cfd_schema_touch(Oid class, Oid object, bool created, bool dropped);
extern bool cfd_schema_touched(void);
/*
 * Returns the objects touched since they were last returned, one per call;
 * false if there are no more.
 */
extern bool cfd_schema_take(CfdObject *object);
extern bool cfd_schema_pending(void);
/* Records whether a lookup found the object. */
extern void cfd_schema_found(const CfdObject *object, bool exists);
extern void cfd_schema_subtransaction(int level, bool commit);
/* Ends the transaction. Returns the version after it, or 0 if nothing changed. */
extern uint64 cfd_schema_end(bool commit);

/* define.c */
/*
 * Appends a record, unless the object is irrelevant to clients. Returns false
 * if the object does not exist.
 */
extern bool cfd_schema_define(StringInfo out, const CfdObject *object);
extern void cfd_schema_define_gone(StringInfo out, const CfdObject *object);
/* Appends all objects. `full` is called whenever the text has become long. */
extern void cfd_schema_define_all(StringInfo out, void (*full) (StringInfo out));
extern void cfd_schema_field(StringInfo out, const char *text);
extern void cfd_schema_number(StringInfo out, uint64 number);

/* path.c */
/* Whether the search path equals the one last reported. */
extern bool cfd_schema_path_said(void);
extern void cfd_schema_path(StringInfo out);
/* Marks the last report as possibly outdated. */
extern void cfd_schema_path_forget(void);

/* kept.c */
/* From now on settings are reported. */
extern void cfd_kept_follow(void);
/* To be called at the end of an outermost statement: reports settings that it has created. */
extern void cfd_kept_look(void);
/* To be called before a utility statement, and when it has succeeded. */
extern void cfd_kept_utility(const Node *statement);
extern void cfd_kept_discarded(void);
/* To be called before a function is executed. */
extern void cfd_kept_function(Oid function);
/* Whether the session has anything but settings that ends with it. Does not fail. */
extern bool cfd_kept_anything(void);

/* owner.c */
/*
 * A client asks for reports: the process that it was told of (empty: it knows
 * that there is a pooler), and its name. An error if it is served by mistake.
 */
extern void cfd_owner_asked(const char *pid, const char *name);
/*
 * Returns the length of a text without the name of its client. An error if
 * that is another one.
 */
extern size_t cfd_owner_text(const char *text);
/* To be called before an outermost statement is executed. */
extern void cfd_owner_executes(void);
/* To be called after DISCARD ALL with this text. */
extern void cfd_owner_discards(const char *text);

/* watch.c */
/*
 * To be called at the end of an outermost statement, and of anything else that
 * may have changed objects.
 */
extern void cfd_schema_report(void);
/*
 * Inspects a statement after parse analysis: a client may send its request in
 * a statement that it only parses.
 */
extern void cfd_schema_asked(const Query *query);
/* To be called before commit, while catalogs can still be read. */
extern void cfd_schema_before_commit(void);
/* To be called after the end of a transaction. Cannot read catalogs or raise errors. */
extern void cfd_schema_ended(bool commit);

#endif
