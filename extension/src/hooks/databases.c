/*
 * databases.c
 *	  CREATE DATABASE copies the files of another one: see hooks.h.
 *
 * The copy's pages would hold FIDs of the original's partitions: what is deleted in
 * the original would be swept, whatever the copy still holds, and dropping one
 * would take the other's values. A FID belongs to one column.
 *
 * Invariant: FIDs on the pages of a database are of partitions of that database.
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "session/channel.h"
#include "gc/collect.h"
#include "hooks/hooks.h"
#include "wal/marker.h"

#define DEFAULT_TEMPLATE "template1"
/* Nobody connects to it. */
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

/* Constants in catalogs are in a partition of no relation, and count. */
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

	/* Without a store that has values there are no pages that name some. */
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
