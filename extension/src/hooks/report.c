/*
 * report.c
 *	  Makes the server report search_path, role, extra_float_digits and
 *	  bytea_output to its client whenever they change, as it does for
 *	  DateStyle and others.
 *
 * The first two determine which table an unqualified name means, and functions
 * can change them (schema/path.c reports the effective path). The other two
 * determine the text form of opened values. PostgreSQL 18 and later report
 * search_path themselves.
 *
 * Invariant: values and behaviour of PostgreSQL's settings do not change.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "hooks/hooks.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"

/*
 * Settings that affect the meaning of names, or the text form of values that
 * the client opens.
 */
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
