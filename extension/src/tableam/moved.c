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
#include "value/promote.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * Whether a row has a permanent FID in a column that the previous version does
 * not have there.
 */
static bool
has_moved(const CfdColumns *columns, int n, TupleTableSlot *slot, TupleTableSlot *before)
{
	int			index = columns->column[n].index;
	CfdFid		fid;

	if (slot->tts_isnull[index])
		return false;
	fid = DatumGetUInt64(slot->tts_values[index]);
	if (cfd_fid_is_temporary(fid))
		return false;
	return before == NULL || before->tts_isnull[index] ||
		DatumGetUInt64(before->tts_values[index]) != fid;
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

static void
check_row(Relation relation, TupleTableSlot *slot, TupleTableSlot *before)
{
	const CfdColumns *columns = cfd_columns(relation);

	for (int n = 0; n < columns->count; n++)
	{
		if (has_moved(columns, n, slot, before))
			ask_keeper(relation, n, DatumGetUInt64(slot->tts_values[columns->column[n].index]));
		columns = cfd_columns(relation);
	}
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
		cfd_columns(relation)->count == 0)
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
