/*
 * sort_support.c
 *	  Sort support of protected types. PostgreSQL's sorts compare values by
 *	  rank (order/ranks.h) instead of asking the keeper for each
 *	  comparison.
 *
 * Before it compares anything, PostgreSQL offers each value of the leading
 * sort column for abbreviation. A FID is its own abbreviation, and the offer
 * announces the value; abbreviations that something else compares are all 0,
 * since equal values have different FIDs. Where values are not offered (later columns, bounded
 * sorts, merges of other processes' runs), each comparison takes a round trip,
 * as without sort support. The order of an index build's rows is already known
 * (index/row_order.h).
 *
 * Invariant: comparisons agree with the operator class's comparison function.
 */
#include "postgres.h"

#include "order/ranks.h"
#include "known/known.h"
#include "fmgr.h"
#include "ops/evaluate.h"
#include "value/types.h"
#include "utils/sortsupport.h"

bool		cfd_sort_alike = false;

typedef struct Sorter
{
	uint32		program;
	CfdRanks   *ranks;			/* NULL: values are not announced */
} Sorter;

static int
compare(Datum a, Datum b, SortSupport ssup)
{
	const Sorter *sorter = ssup->ssup_extra;
	CfdFid		x = DatumGetUInt64(a);
	CfdFid		y = DatumGetUInt64(b);
	int			order;

	if (x == y)
		return 0;
	if (sorter->ranks != NULL && cfd_ranks_compare(sorter->ranks, x, y, &order))
		return order;
	return cfd_order_fids(sorter->program, x, y);
}

static Datum
announce(Datum original, SortSupport ssup)
{
	const Sorter *sorter = ssup->ssup_extra;
	CfdFid		fid = DatumGetUInt64(original);

	if (unlikely(fid == 0))
		cfd_invalid_fid();
	/* The order of an index build's rows is already known. */
	if (!cfd_known_in_build(fid))
		cfd_ranks_announce(sorter->ranks, fid);
	return original;
}

static Datum
announce_alike(Datum original, SortSupport ssup)
{
	(void) announce(original, ssup);
	return (Datum) 0;
}

static bool
never_abort(int count, SortSupport ssup)
{
	(void) count;
	(void) ssup;
	return false;
}

void
cfd_sort_support(SortSupport ssup, uint8 type, uint32 program)
{
	Sorter	   *sorter = MemoryContextAllocZero(ssup->ssup_cxt, sizeof(Sorter));

	sorter->program = program;
	ssup->ssup_extra = sorter;
	ssup->comparator = compare;
	if (!ssup->abbreviate || !cfd_enable_bulk_sort)
		return;
	sorter->ranks = cfd_ranks_create(ssup->ssup_cxt, type);
	ssup->abbrev_converter = cfd_sort_alike ? announce_alike : announce;
	ssup->abbrev_abort = never_abort;
	ssup->abbrev_full_comparator = compare;
}
