/*
 * path.c
 *	  The effective search path and the settings it was derived from; see
 *	  schema.h.
 *
 * Does not create the temporary schema, unlike current_schemas().
 *
 * Invariant: either the last report is still correct, or the settings differ
 * from those reported with it, which PostgreSQL itself reports
 * (hooks/report.c).
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "compat/compat.h"
#include "generated/contract.h"
#include "miscadmin.h"
#include "schema/schema.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* The last report. */
static bool said = false;
static Oid *said_path = NULL;
static int	said_count = 0;
static char *said_setting = NULL;
static Oid	said_users[3];

void
cfd_schema_path_forget(void)
{
	said = false;
}

static Oid
temporary(void)
{
	Oid			namespace;
	Oid			toast;

	GetTempNamespaceState(&namespace, &toast);
	return namespace;
}

/* The effective search path, including schemas that are searched implicitly. */
static List *
effective(void)
{
	CfdSearchPath *path = CFD_SEARCH_PATH(CurrentMemoryContext);
	List	   *list = list_copy(path->schemas);

	if (path->addCatalog)
		list = lcons_oid(PG_CATALOG_NAMESPACE, list);
	if (path->addTemp)
		list = lcons_oid(temporary(), list);
	return list;
}

/* Roles whose privileges matter. */
static void
current_users(Oid users[3])
{
	users[0] = GetSessionUserId();
	users[1] = GetCurrentRoleId();
	users[2] = GetUserId();
}

static bool
as_said(const List *path, const Oid users[3])
{
	int			at = 0;
	ListCell   *cell;

	if (!said || list_length(path) != said_count || memcmp(users, said_users, sizeof(said_users)) != 0 ||
		strcmp(namespace_search_path, said_setting) != 0)
		return false;
	foreach(cell, path)
	{
		if (lfirst_oid(cell) != said_path[at++])
			return false;
	}
	return true;
}

static void
remember(const List *path, const Oid users[3])
{
	ListCell   *cell;

	said = false;
	if (said_setting != NULL)
		pfree(said_setting);
	if (said_path != NULL)
		pfree(said_path);
	said_setting = NULL;
	said_path = NULL;
	said_setting = MemoryContextStrdup(TopMemoryContext, namespace_search_path);
	said_path = MemoryContextAlloc(TopMemoryContext, Max(1, list_length(path)) * sizeof(Oid));
	said_count = 0;
	foreach(cell, path)
		said_path[said_count++] = lfirst_oid(cell);
	memcpy(said_users, users, sizeof(said_users));
	said = true;
}

static void
put_namespace(StringInfo out, Oid namespace)
{
	char	   *name = OidIsValid(namespace) ? get_namespace_name(namespace) : NULL;

	cfd_schema_field(out, name == NULL ? "" : name);
}

bool
cfd_schema_path_said(void)
{
	Oid			users[3];
	List	   *path = effective();
	bool		result;

	current_users(users);
	result = as_said(path, users);
	list_free(path);
	return result;
}

void
cfd_schema_path(StringInfo out)
{
	const char *const settings[] = {"search_path", "role", "session_authorization"};
	Oid			users[3];
	List	   *path = effective();
	ListCell   *cell;

	current_users(users);
	for (int i = 0; i < lengthof(settings); i++)
		cfd_schema_field(out, GetConfigOptionByName(settings[i], NULL, false));
	put_namespace(out, temporary());
	cfd_schema_number(out, list_length(path));
	foreach(cell, path)
		put_namespace(out, lfirst_oid(cell));
	remember(path, users);
}
