/*
 * moved.c
 *	  Check against moving permanent FIDs; see moved.h.
 *
 * Invariant: without a client, a row may contain only temporary FIDs, which
 * came in envelopes, and FIDs of the row version that it replaces.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "session/channel.h"
#include "tableam/moved.h"
#include "value/arrays.h"
#include "value/promote.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* The FIDs in a column of a row; of NULL there are none. */
static const CfdFid *
fids_of(const CfdColumns *columns, int n, TupleTableSlot *slot, int *count)
{
	int			index = columns->column[n].index;

	*count = 0;
	if (slot == NULL || slot->tts_isnull[index])
		return NULL;
	if (n >= columns->count)
		return cfd_array_fids(DatumGetArrayTypeP(slot->tts_values[index]), count);
	*count = 1;
	return &slot->tts_values[index];
}

static bool
is_among(CfdFid fid, const CfdFid *fids, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (fids[i] == fid)
			return true;
	}
	return false;
}

/*
 * Asks the keeper about a FID of the column's own partition. The promotion of
 * other FIDs is refused later.
 */
static void
ask_keeper(Relation relation, int n, CfdFid fid)
{
	const CfdColumns *columns = cfd_open_columns(relation);
	CfdPromotion item = {.fid = fid, .partition = columns->column[n].partition};

	if (cfd_fid_partition(fid) == item.partition)
		cfd_promote(relation, &item, 1);
}

/*
 * Checks that a row has no permanent FID in a column that the previous version
 * does not have there.
 */
static void
moved_check_column(Relation relation, int n, TupleTableSlot *slot, TupleTableSlot *before)
{
	int			count;
	int			count_before;
	const CfdFid *fids = fids_of(cfd_columns(relation), n, slot, &count);
	const CfdFid *fids_before = fids_of(cfd_columns(relation), n, before, &count_before);

	for (int i = 0; i < count; i++)
	{
		if (!cfd_fid_is_temporary(fids[i]) && !is_among(fids[i], fids_before, count_before))
			ask_keeper(relation, n, fids[i]);
	}
}

static void
check_row(Relation relation, TupleTableSlot *slot, TupleTableSlot *before)
{
	int			count = cfd_columns(relation)->count + cfd_columns(relation)->arrays;

	for (int n = 0; n < count; n++)
		moved_check_column(relation, n, slot, before);
}

/* The row version that is replaced, or NULL. */
static TupleTableSlot *
version_before(Relation relation, ItemPointer old)
{
	TupleTableSlot *before;

	if (old == NULL)
		return NULL;
	before = table_slot_create(relation, NULL);
	if (table_tuple_fetch_row_version(relation, old, SnapshotAny, before))
	{
		slot_getallattrs(before);
		return before;
	}
	ExecDropSingleTupleTableSlot(before);
	return NULL;
}

void
cfd_check_moved(Relation relation, ItemPointer old, TupleTableSlot **slots, int count)
{
	TupleTableSlot *before;

	if (cfd_channel.had_client || OidIsValid(relation->rd_rel->relrewrite) ||
		!cfd_holds_fids(cfd_columns(relation)))
		return;
	before = version_before(relation, old);
	for (int i = 0; i < count; i++)
	{
		slot_getallattrs(slots[i]);
		check_row(relation, slots[i], before);
	}
	if (before != NULL)
		ExecDropSingleTupleTableSlot(before);
}
