/*
 * hooks.h
 *	  The extension's hooks into PostgreSQL. Each file of this folder
 *	  installs its own hooks.
 *
 * Invariant: every hook calls the previously installed one, or PostgreSQL's
 * standard function.
 */
#ifndef CFD_HOOKS_HOOKS_H
#define CFD_HOOKS_HOOKS_H

#include "postgres.h"
#include "nodes/execnodes.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "parser/parse_node.h"

/* statement.c: nesting depth, mode, fences */
extern void cfd_statement_init(void);
/* transaction.c: ends of transactions, dropped relations */
extern void cfd_transaction_init(void);
extern void cfd_note_dropped(Oid relation);
extern void cfd_flush_dropped(void);
/* ddl.c: access method of new tables, constants of materialized views */
extern PlannedStmt *cfd_adapt_ddl(PlannedStmt *statement);
/* family.c: changes of a column's family that the server cannot make */
extern void cfd_family_check(const AlterTableStmt *alter);
/* bodies.c: constants in bodies of routines. Within the statement's mode. */
extern PlannedStmt *cfd_bodies_adapt(PlannedStmt *statement);
/* cells.c: numbers of columns of the family rnd_ */
extern PlannedStmt *cfd_cells_adapt(PlannedStmt *statement);
extern void cfd_cells_after(const Node *statement);
/* Whether a statement builds indexes for which cells are compared. */
extern bool cfd_cells_build_indexes(const Node *statement);
/* soft.c: keys of columns of the family soft_, and what their encodings cannot do */
extern PlannedStmt *cfd_soft_adapt(PlannedStmt *statement);
extern void cfd_soft_after(const Node *statement);
extern void cfd_soft_check_query(const Query *query);
extern void cfd_soft_check_node(Node *node);
/* ordered.c: refuses the order of what has none */
extern void cfd_check_ordered_query(const Query *query);
extern void cfd_check_ordered(Node *node);
/* ledger.c: ledger tables */
extern bool cfd_ledger_asked(const CreateStmt *create);
extern void cfd_ledger_adapt(CreateStmt *create);
extern void cfd_ledger_check_utility(const Node *statement);
extern void cfd_ledger_after_utility(const Node *statement, bool asked);
/* checks.c: refuses check constraints on their own columns, once the statement has run */
extern void cfd_ledger_refuse_checks(const Node *statement);
/* refusals.c: places where protected types cannot be stored */
extern void cfd_refusals_init(void);
/* Within REFRESH MATERIALIZED VIEW CONCURRENTLY. */
extern bool cfd_refreshing;
extern void cfd_refresh_begin(void);
/* At its end: refuses what keeps the rows that only its own tables may have. */
extern void cfd_refresh_check(void);
/* unchecked.c: without a client, constraints on protected values are skipped */
typedef struct CfdUnchecked CfdUnchecked;
extern CfdUnchecked *cfd_unchecked_insert(const PlannedStmt *plan);
extern CfdUnchecked *cfd_unchecked_copy(const Node *statement);
extern void cfd_unchecked_end(CfdUnchecked *all);
extern PlannedStmt *cfd_unchecked_foreign_keys(PlannedStmt *statement);
/* databases.c: refuses copies of databases with protected values */
extern void cfd_check_createdb(const CreatedbStmt *create);
/* parse.c: casts through text, plaintext constants */
extern void cfd_parse_init(void);
/* grants.c: what a statement may do, from the comments at the end of its text. */
extern void cfd_take_grants(const char *text);
extern void cfd_log_grants(void);
extern void cfd_check_expression(Node *node);
/* refusals.c: after ALTER TABLE, what existing rows have in new columns */
extern void cfd_check_added(const Node *statement);
extern void cfd_refuse_cast(Oid from, Oid to);
/* planner.c: paths, and passes over finished plans */
extern void cfd_planner_init(void);
/* stars.c: columns that a star does not include */
extern void cfd_stars_narrow(const ParseState *state, Query *query);
/* shown.c: row versions of ledger tables that a result shows */
extern void cfd_shown_find(const ParseState *state, Query *query);
/* erase.c: statements that erase versions of ledger tables */
extern void cfd_erase_aim(Query *query);
/* packed.c: refuses expressions that make text or JSON of protected values. */
extern void cfd_check_packed(Node *node, List *queries);
/* report.c: settings that are reported to the client */
extern void cfd_report_init(void);
/* abbreviations.c: whether a plan compares abbreviations. The context is not used. */
extern bool cfd_compares_abbreviations(PlanState *state, void *context);
/* messages.c: values in details of errors */
extern void cfd_messages_init(void);

#endif
