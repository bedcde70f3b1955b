/*
 * sampled.c
 *	  Predicates of partial indexes evaluated by ANALYZE without a client;
 *	  see sampled.h.
 *
 * PostgreSQL evaluates them in a child of a memory context named "Analyze
 * Index", where nothing else runs.
 *
 * Invariant: as in sampled.h.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "miscadmin.h"
#include "nodes/memnodes.h"
#include "ops/sampled.h"
#include "postmaster/autovacuum.h"
#include "session/channel.h"
#include "utils/memutils.h"

static void
tell_once(MemoryContext index)
{
	static MemoryContext told = NULL;

	if (told == index)
		return;
	told = index;
	ereport(CFD_IS_AUTOVACUUM() ? DEBUG1 : WARNING,
			(errmsg("the predicate of a partial index is not evaluated"),
			 errdetail("It compares protected values, and there is no client session: its statistics are "
					   "those of an index of all rows."),
			 errhint("ANALYZE the table through the Confide proxy.")));
}

bool
cfd_sampled_without_client(void)
{
	if (cfd_channel.had_client)
		return false;
	for (MemoryContext c = CurrentMemoryContext; c != NULL; c = c->parent)
	{
		if (strcmp(c->name, "Analyze Index") != 0)
			continue;
		tell_once(c);
		return true;
	}
	return false;
}
