/*
 * analyze.c
 *	  ANALYZE of protected columns: PostgreSQL's own statistics, computed while the
 *	  order of the sample is known (order/ranks.h).
 *
 * Invariant: the sample is compared within its column only, by comparisons that
 * ANALYZE makes anyway: it sorts the whole sample.
 */
#include "postgres.h"

#include "order/ranks.h"
#include "commands/vacuum.h"
#include "fmgr.h"
#include "value/types.h"

typedef struct Standard
{
	AnalyzeAttrComputeStatsFunc compute;
	void	   *extra;
} Standard;

static void
announce_sample(CfdRanks *ranks, VacAttrStats *stats, AnalyzeAttrFetchFunc fetch, int rows)
{
	for (int i = 0; i < rows; i++)
	{
		bool		null;
		Datum		value = fetch(stats, i, &null);

		if (!null && DatumGetUInt64(value) != 0)
			cfd_ranks_announce(ranks, DatumGetUInt64(value));
	}
}

static void
compute(VacAttrStats *stats, AnalyzeAttrFetchFunc fetch, int rows, double total)
{
	const Standard *standard = stats->extra_data;
	void	   *extra = stats->extra_data;
	CfdRanks   *ranks = cfd_ranks_create(CurrentMemoryContext, cfd_type_code(stats->attrtypid));

	stats->extra_data = standard->extra;
	PG_TRY();
	{
		announce_sample(ranks, stats, fetch, rows);
		cfd_ranks_tell(ranks);
		standard->compute(stats, fetch, rows, total);
	}
	PG_FINALLY();
	{
		cfd_ranks_tell_no_more(ranks);
		stats->extra_data = extra;
	}
	PG_END_TRY();
}

PG_FUNCTION_INFO_V1(cfd_analyze);
Datum
cfd_analyze(PG_FUNCTION_ARGS)
{
	VacAttrStats *stats = (VacAttrStats *) PG_GETARG_POINTER(0);
	Standard   *standard;

	if (!std_typanalyze(stats))
		PG_RETURN_BOOL(false);
	if (cfd_enable_bulk_sort && cfd_type_code(stats->attrtypid) != 0)
	{
		standard = MemoryContextAlloc(stats->anl_context, sizeof(Standard));
		standard->compute = stats->compute_stats;
		standard->extra = stats->extra_data;
		stats->compute_stats = compute;
		stats->extra_data = standard;
	}
	PG_RETURN_BOOL(true);
}
