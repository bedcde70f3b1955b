/*
 * kept.c
 *	  What a client that watches must know in order to continue its session
 *	  on another connection, after a restart of the server: the settings,
 *	  and whether the session has anything else that ends with it; see
 *	  schema.h.
 *
 * Settings are reported as PostgreSQL reports DateStyle and others, whatever
 * has changed them. Everything else only makes the session one that cannot be
 * continued: temporary tables, LISTEN, advisory locks, held cursors, PREPARE,
 * libraries, and what functions of other languages may keep.
 *
 * Not noticed: what trigger functions of such languages keep.
 *
 * Invariant: when a client learns that a transaction is over, it has been told
 * of everything of it that outlives the transaction.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_language.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "commands/proclang.h"
#include "compat/compat.h"
#include "miscadmin.h"
#include "schema/schema.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/syscache.h"

/* Something that DISCARD ALL ends, and something that it does not. */
static bool kept = false;
static bool kept_for_good = false;
/* Settings may have been created that are not reported yet. */
static bool new_settings = false;
/* A client watches. */
static bool following = false;

/* What holds for one transaction only, and what cannot be read. */
static const char *const passing[] = {
	"transaction_isolation", "transaction_read_only", "transaction_deferrable", "seed"
};

static bool
cfd_kept_is_passing(const char *name)
{
	for (int i = 0; i < lengthof(passing); i++)
		if (strcmp(name, passing[i]) == 0)
			return true;
	return false;
}

/*
 * A setting that was created with its value has not been reported. Set once
 * more, only until the end of the transaction, it is.
 */
static void
report_again(const struct config_generic *setting)
{
	const char *value = GetConfigOption(setting->name, true, false);

	if (value != NULL)
		(void) set_config_option(setting->name, pstrdup(value), PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_LOCAL, true, 0, false);
}

static void
report_settings(void)
{
	int			count;
	struct config_generic **settings = CFD_SETTINGS(count);

	for (int i = 0; i < count; i++)
	{
		struct config_generic *setting = settings[i];
		bool		visible = superuser() || (setting->flags & GUC_SUPERUSER_ONLY) == 0;

		if ((setting->flags & GUC_REPORT) != 0 || cfd_kept_is_passing(setting->name) || !visible ||
			(setting->context != PGC_USERSET && setting->context != PGC_SUSET))
			continue;
		setting->flags |= GUC_REPORT;
		if (following && (setting->flags & GUC_CUSTOM_PLACEHOLDER) != 0)
			report_again(setting);
	}
	new_settings = false;
}

void
cfd_kept_follow(void)
{
	following = false;
	report_settings();
	following = true;
}

void
cfd_kept_look(void)
{
	if (unlikely(new_settings) && following)
		report_settings();
}

static bool
of_another_language(const DoStmt *statement)
{
	ListCell   *cell;

	foreach(cell, statement->args)
	{
		const DefElem *option = lfirst_node(DefElem, cell);

		if (strcmp(option->defname, "language") == 0 && strcmp(strVal(option->arg), "plpgsql") != 0)
			return true;
	}
	return false;
}

void
cfd_kept_utility(const Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_ListenStmt:
		case T_PrepareStmt:
			kept = true;
			break;
		case T_DeclareCursorStmt:
			kept |= (((const DeclareCursorStmt *) statement)->options & CURSOR_OPT_HOLD) != 0;
			break;
		case T_VariableSetStmt:
			new_settings = true;
			kept |= ((const VariableSetStmt *) statement)->name != NULL &&
				strcmp(((const VariableSetStmt *) statement)->name, "seed") == 0;
			break;
		case T_DoStmt:
			kept_for_good |= of_another_language((const DoStmt *) statement);
			break;
		case T_LoadStmt:
			kept_for_good = true;
			break;
		default:
			break;
	}
}

void
cfd_kept_discarded(void)
{
	kept = false;
}

/* Whether a function may keep something in the memory of the process. */
static bool
may_keep(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc form;
	bool		may;

	if (!HeapTupleIsValid(tuple))
		return true;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	may = form->provolatile == PROVOLATILE_VOLATILE && form->pronamespace != PG_CATALOG_NAMESPACE &&
		form->pronamespace != get_namespace_oid("confide", true) &&
		form->prolang != INTERNALlanguageId && form->prolang != SQLlanguageId &&
		form->prolang != get_language_oid("plpgsql", true);
	ReleaseSysCache(tuple);
	return may;
}

void
cfd_kept_function(Oid function)
{
	if (!following || kept_for_good)
		return;
	switch (function)
	{
		case F_SET_CONFIG:
			new_settings = true;
			break;
		case F_PG_ADVISORY_LOCK_INT8:
		case F_PG_ADVISORY_LOCK_SHARED_INT8:
		case F_PG_TRY_ADVISORY_LOCK_INT8:
		case F_PG_TRY_ADVISORY_LOCK_SHARED_INT8:
		case F_PG_ADVISORY_LOCK_INT4_INT4:
		case F_PG_ADVISORY_LOCK_SHARED_INT4_INT4:
		case F_PG_TRY_ADVISORY_LOCK_INT4_INT4:
		case F_PG_TRY_ADVISORY_LOCK_SHARED_INT4_INT4:
		case F_LASTVAL:
		case F_CURRVAL:
		case F_SETSEED:
			kept = true;
			break;
		case F_PG_REPLICATION_ORIGIN_SESSION_SETUP:
			kept_for_good = true;
			break;
		default:
			if (function >= FirstNormalObjectId)
				kept_for_good = may_keep(function);
			break;
	}
}

bool
cfd_kept_anything(void)
{
	Oid			temporary;
	Oid			toast;

	GetTempNamespaceState(&temporary, &toast);
	return kept || kept_for_good || OidIsValid(temporary);
}
