/*
 * report.c
 *	  Has the server report search_path and role to its client whenever they
 *	  change, as it does with DateStyle and others.
 *
 * Which table an unqualified name means depends on them, and functions can
 * change them. A client that is told need not ask before each statement whose
 * name stands for tables of different protection (crates/proxy). From version
 * 18 on PostgreSQL reports search_path itself.
 *
 * Invariant: values and behaviour of the settings stay as they are.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "hooks/hooks.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"

void
cfd_report_init(void)
{
	int			count;
	struct config_generic **settings = CFD_SETTINGS(count);

	for (int i = 0; i < count; i++)
		if (strcmp(settings[i]->name, "search_path") == 0 || strcmp(settings[i]->name, "role") == 0)
			settings[i]->flags |= GUC_REPORT;
}
