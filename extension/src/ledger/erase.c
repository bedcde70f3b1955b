/*
 * erase.c
 *	  Erasing versions of a history; see ledger.h. hooks/erase.c generates
 *	  the statements.
 *
 * A statement first announces what it erases (confide.ledger_erasing). The
 * access method asks this module about each row. At the end of the statement,
 * a row in the table's audit records what was erased.
 *
 * Invariant: nothing is erased unless a statement has announced it, nor
 * without an audit row in the same transaction.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "ledger/ledger.h"
#include "miscadmin.h"
#include "session/channel.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "value/place.h"

/* What the running statement erases; no history: nothing. */
typedef struct Erasing
{
	Oid			history;
	int64		number;
	bool		through;
	int			depth;			/* nesting depth of the statement */
	int			level;			/* nesting level of its transaction */
	uint64		rows;			/* rows erased so far */
} Erasing;

static Erasing erasing;

/* Anybody may call the function, so check its argument. */
static void
check_history(Oid oid)
{
	Relation	history = relation_open(oid, AccessShareLock);

	if (history->rd_rel->relkind != RELKIND_RELATION || cfd_columns(history)->ledger.role != CFD_LEDGER_HISTORY)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not the history of a ledger table", RelationGetRelationName(history))));
	if (pg_class_aclcheck(oid, GetUserId(), ACL_DELETE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, RelationGetRelationName(history));
	relation_close(history, AccessShareLock);
}

PG_FUNCTION_INFO_V1(cfd_ledger_erasing);
Datum
cfd_ledger_erasing(PG_FUNCTION_ARGS)
{
	if (!cfd_channel.had_client)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("confide: no client session"),
				 errdetail("Versions of ledger tables are erased in the name of a client."),
				 errhint("Connect through the Confide proxy.")));
	check_history(PG_GETARG_OID(0));
	erasing = (Erasing) {
		.history = PG_GETARG_OID(0),
		.number = PG_GETARG_INT64(1),
		.through = PG_GETARG_BOOL(2),
		.depth = cfd_statement_depth,
		.level = GetCurrentTransactionNestLevel()
	};
	PG_RETURN_BOOL(true);
}

bool
cfd_ledger_may_erase(Relation history)
{
	return OidIsValid(erasing.history) && erasing.history == RelationGetRelid(history);
}

void
cfd_ledger_erased(Relation history, int64 sn)
{
	if (!cfd_ledger_may_erase(history) || (erasing.through ? sn > erasing.number : sn != erasing.number))
		elog(ERROR, "a version is erased that no statement has named");
	erasing.rows++;
}

void
cfd_ledger_erase_forget(int level)
{
	if (erasing.level >= level)
		erasing = (Erasing) {0};
}

/* Whether the table still has this version as a current row. */
static bool
is_current(Relation table, int64 number)
{
	char	   *name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(table)),
												  RelationGetRelationName(table));
	Oid			types[1] = {INT8OID};
	Datum		values[1] = {Int64GetDatum(number)};

	if (SPI_execute_with_args(psprintf("SELECT FROM ONLY %s WHERE sn OPERATOR(pg_catalog.=) $1", name),
							  1, types, values, NULL, false, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not look for a row version");
	return SPI_processed > 0;
}

static void
write_audit(Relation table, const Erasing *what)
{
	Oid			types[4] = {REGCLASSOID, TEXTOID, INT8OID, INT8OID};
	Datum		values[4] = {
		ObjectIdGetDatum(RelationGetRelid(table)),
		CStringGetTextDatum(what->through ? "erase through" : "erase"),
		Int64GetDatum(what->number),
		Int64GetDatum(what->rows)
	};

	if (SPI_execute_with_args("SELECT confide.ledger_note($1, $2, $3, $4)", 4, types, values, NULL, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not write the audit of a ledger table");
}

/*
 * Runs as the table's owner, since others may lack privileges on the table or
 * its audit.
 */
static void
end_erasing(const Erasing *what)
{
	Relation	history = relation_open(what->history, AccessShareLock);
	Relation	table = cfd_ledger_table_of(history);
	bool		current = false;
	Oid			user;
	int			context;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(table->rd_rel->relowner, context | SECURITY_LOCAL_USERID_CHANGE);
	SPI_connect();
	if (what->rows > 0)
		write_audit(table, what);
	else
		current = is_current(table, what->number);
	SPI_finish();
	SetUserIdAndSecContext(user, context);
	if (current)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("version " INT64_FORMAT " of ledger table \"%s\" is a current row",
						what->number, RelationGetRelationName(table)),
				 errdetail("Versions of the history can be erased."),
				 errhint("Delete the row by another condition, and then erase its version.")));
	relation_close(table, NoLock);
	relation_close(history, NoLock);
}

void
cfd_ledger_erase_end(void)
{
	Erasing		what = erasing;

	if (!OidIsValid(what.history) || what.depth != cfd_statement_depth)
		return;
	erasing = (Erasing) {0};
	if (what.rows > 0 || !what.through)
		end_erasing(&what);
}
