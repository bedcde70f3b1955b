/*
 * report.c
 *	  Has the server report search_path, role, extra_float_digits and bytea_output
 *	  to its client whenever they change, as it does with DateStyle and others.
 *
 * Which table an unqualified name means depends on the first two, and functions can
 * change them (schema/path.c says what is in effect); how opened values are written, on
 * the others. From version 18 on PostgreSQL reports search_path itself.
 *
 * Invariant: values and behaviour of the settings of PostgreSQL stay as they are.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "hooks/hooks.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"

/* What names mean, and how the client writes values that it has opened. */
static const char *const reported[] = {"search_path", "role", "extra_float_digits", "bytea_output"};

void
cfd_report_init(void)
{
	int			count;
	struct config_generic **settings;

	settings = CFD_SETTINGS(count);
	for (int i = 0; i < count; i++)
		for (int k = 0; k < lengthof(reported); k++)
			if (strcmp(settings[i]->name, reported[k]) == 0)
				settings[i]->flags |= GUC_REPORT;
}
