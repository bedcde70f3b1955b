/*
 * copy.c
 *	  Release of temporary values between the batches of a COPY; see am.h.
 *
 * While COPY fills a single table, all rows read so far are in the batch that
 * has just been written, and nothing else names their temporary values:
 * constants of the statement are in the plan arena (value/place.h). The
 * exception is a client batch (value/batch.c) that contains values of rows not
 * read yet; only older values are released. The partitions of a partitioned
 * table have separate batches, so nothing is released before the end there.
 *
 * Invariant: nothing is released while a portal is open.
 */
#include "postgres.h"

#include "session/arena.h"
#include "tableam/am.h"
#include "value/batch.h"
#include "value/place.h"
#include "utils/rel.h"

static bool copying = false;

void
cfd_copy_begin(void)
{
	copying = !cfd_arena_in_use() && !cfd_arena_portals_open();
}

void
cfd_copy_end(void)
{
	copying = false;
}

void
cfd_copy_batch_done(Relation relation)
{
	if (copying && cfd_mode == CFD_MODE_COPY && !relation->rd_rel->relispartition)
		cfd_arena_release_below(cfd_unread());
}
