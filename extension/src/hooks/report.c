/*
 * report.c
 *	  Has the server report search_path, role, extra_float_digits and bytea_output
 *	  to its client whenever they change, as it does with DateStyle and others.
 *
 * Which table an unqualified name means depends on the first two, and functions can
 * change them; how opened values are written, on the others. A client that is told need not ask before each statement whose
 * name stands for tables of different protection (crates/proxy). From version
 * 18 on PostgreSQL reports search_path itself.
 *
 * Reports, too, that a function has changed what a name stands for, in the setting
 * confide.schema_changes, a count: a client sees the function's call only.
 *
 * Invariant: values and behaviour of the settings of PostgreSQL stay as they are.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "hooks/hooks.h"
#include "nodes/parsenodes.h"
#include "utils/catcache.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/syscache.h"

/* What names mean, and how the client writes values that it has opened. */
static const char *const reported[] = {"search_path", "role", "extra_float_digits", "bytea_output"};

static int	changes = 0;

/* How many relations of all schemas have this name. */
static int
named(const char *name)
{
	CatCList   *list = SearchSysCacheList1(RELNAMENSP, CStringGetDatum(name));
	int			count = list->n_members;

	ReleaseSysCacheList(list);
	return count;
}

/* Something of the same name was hidden, and is seen again. */
static bool
uncovers(const DropStmt *drop)
{
	ListCell   *cell;

	if (drop->removeType == OBJECT_SCHEMA)
		return true;
	if (drop->removeType != OBJECT_TABLE && drop->removeType != OBJECT_VIEW &&
		drop->removeType != OBJECT_MATVIEW && drop->removeType != OBJECT_FOREIGN_TABLE)
		return false;
	foreach(cell, drop->objects)
	{
		if (named(strVal(llast(lfirst_node(List, cell)))) > 0)
			return true;
	}
	return false;
}

/*
 * Whether a known name may stand for something else after this statement. An
 * unknown one makes the client look for it anyway.
 */
static bool
changes_names(const Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_AlterObjectSchemaStmt:
		case T_AlterTableStmt:
		case T_CreateFunctionStmt:
		case T_RenameStmt:
		case T_ViewStmt:
			return true;
		case T_CreateStmt:
			return named(((const CreateStmt *) statement)->relation->relname) > 1;
		case T_CreateTableAsStmt:
			return named(((const CreateTableAsStmt *) statement)->into->rel->relname) > 1;
		case T_DropStmt:
			return uncovers((const DropStmt *) statement);
		default:
			return false;
	}
}

/* After a utility statement that another statement has run. */
void
cfd_report_change(const Node *statement)
{
	char		count[16];

	if (!changes_names(statement))
		return;
	snprintf(count, sizeof(count), "%d", changes == PG_INT32_MAX ? 1 : changes + 1);
	SetConfigOption("confide.schema_changes", count, PGC_INTERNAL, PGC_S_OVERRIDE);
}

void
cfd_report_init(void)
{
	int			count;
	struct config_generic **settings;

	DefineCustomIntVariable("confide.schema_changes",
							"Counts statements within functions that changed what a name stands for.",
							NULL,
							&changes,
							0, 0, PG_INT32_MAX,
							PGC_INTERNAL,
							GUC_REPORT | GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							NULL, NULL, NULL);
	settings = CFD_SETTINGS(count);
	for (int i = 0; i < count; i++)
		for (int k = 0; k < lengthof(reported); k++)
			if (strcmp(settings[i]->name, reported[k]) == 0)
				settings[i]->flags |= GUC_REPORT;
}
