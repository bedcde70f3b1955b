/*
 * databases.c
 *	  Refuses CREATE DATABASE from a template with protected values; see
 *	  hooks.h.
 *
 * The pages of the copy would contain FIDs of the original's partitions.
 * Values deleted in the original would be swept although the copy still uses
 * them, and dropping one database would remove the other's values. A FID
 * belongs to exactly one column.
 *
 * Invariant: FIDs on the pages of a database belong to partitions of that
 * database.
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "session/channel.h"
#include "gc/collect.h"
#include "hooks/hooks.h"
#include "wal/marker.h"

#define DEFAULT_TEMPLATE "template1"
/* Nobody can connect to it. */
#define PRISTINE_TEMPLATE "template0"

static const char *
template_of(const CreatedbStmt *create)
{
	const char *name = DEFAULT_TEMPLATE;
	ListCell   *cell;

	foreach(cell, create->options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);

		if (strcmp(option->defname, "template") == 0 && option->arg != NULL)
			name = defGetString(option);
	}
	return name;
}

/* Constants in catalogs count as well; their partition belongs to no relation. */
static bool
cfd_databases_has_values(Oid database)
{
	int			count;
	uint32	   *databases;
	bool		found = false;

	cfd_begin();
	databases = cfd_listed_in_keeper(InvalidOid, &count);
	for (int i = 0; i < count; i++)
		found |= databases[i] == database;
	pfree(databases);
	return found;
}

void
cfd_check_createdb(const CreatedbStmt *create)
{
	const char *name = template_of(create);
	Oid			database;

	/* Without a store that holds values, no page contains FIDs. */
	if (strcmp(name, PRISTINE_TEMPLATE) == 0 || cfd_marker_read() == 0)
		return;
	database = get_database_oid(name, true);
	if (OidIsValid(database) && cfd_databases_has_values(database))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("database \"%s\" cannot be copied: it has protected values", name),
				 errdetail("The copy would hold identifiers that belong to the original."),
				 errhint("Use template0, and pg_dump and pg_restore for the content.")));
}
