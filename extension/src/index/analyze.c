/*
 * analyze.c
 *	  ANALYZE of protected columns. PostgreSQL computes its own statistics
 *	  while the order of the sample is known (order/ranks.h).
 *
 * A column whose values cannot be compared in this session keeps its old
 * statistics, and autovacuum continues with the other columns.
 *
 * Invariant: sample values are compared within their own column only, by
 * comparisons that ANALYZE makes anyway, because it sorts the whole sample.
 */
#include "postgres.h"

#include "access/relation.h"
#include "commands/vacuum.h"
#include "compat/analyze.h"
#include "compat/compat.h"
#include "fmgr.h"
#include "order/ranks.h"
#include "postmaster/autovacuum.h"
#include "session/channel.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "value/promote.h"
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

/* The column of the sample; NULL for an expression. */
static Form_pg_attribute
analyzed_column(const VacAttrStats *stats)
{
	return stats->tupDesc == NULL ? NULL : TupleDescAttr(stats->tupDesc, stats->tupattnum - 1);
}

/*
 * Whether values of the column can be compared in this session. With a client
 * they always can.
 */
static bool
is_comparable(const VacAttrStats *stats)
{
	CfdWireOrderable body = {0};
	CfdReadOrderableAnswer read;
	const CfdColumns *columns;
	const char *answer;
	Form_pg_attribute attribute = analyzed_column(stats);
	Relation	relation;
	uint32		length;

	if (cfd_channel.had_client)
		return true;
	if (attribute == NULL)
		return false;
	/*
	 * The lock is held already. The sample of an inheritance tree has values
	 * from several partitions.
	 */
	relation = relation_open(attribute->attrelid, NoLock);
	if (relation->rd_rel->relkind == RELKIND_RELATION || relation->rd_rel->relkind == RELKIND_MATVIEW)
	{
		columns = cfd_open_columns(relation);
		for (int n = 0; n < columns->count; n++)
		{
			if (columns->column[n].index == attribute->attnum - 1)
				body.partition = columns->column[n].partition;
		}
	}
	relation_close(relation, NoLock);
	if (body.partition == 0)
		return false;
	answer = cfd_call(CFD_KIND_ORDERABLE, &body, sizeof(body), NULL, 0, &length);
	CFD_DECODE(orderable_answer, answer, length, &read);
	return read.head.allowed != 0;
}

static void
tell_skipped(const VacAttrStats *stats)
{
	Form_pg_attribute attribute = analyzed_column(stats);

	ereport(CFD_IS_AUTOVACUUM() ? DEBUG1 : NOTICE,
			(errmsg("column \"%s\" is not analyzed", attribute == NULL ? "expr" : NameStr(attribute->attname)),
			 errdetail("Without a client session its values are not compared."),
			 errhint("ANALYZE the table through the Confide proxy.")));
}

/* Which table the column is of is known only here, not yet in cfd_analyze(). */
static void
compute(VacAttrStats *stats, AnalyzeAttrFetchFunc fetch, int rows, double total)
{
	const Standard *standard = stats->extra_data;
	void	   *extra = stats->extra_data;
	CfdRanks   *volatile ranks = NULL;

	/* An expression that was not recognised before: its values are temporary. */
	if (analyzed_column(stats) == NULL)
		return;
	if (!is_comparable(stats))
	{
		tell_skipped(stats);
		return;
	}
	if (cfd_enable_bulk_sort)
		ranks = cfd_ranks_create(CurrentMemoryContext, cfd_type_code(stats->attrtypid));
	stats->extra_data = standard->extra;
	PG_TRY();
	{
		if (ranks != NULL)
		{
			announce_sample(ranks, stats, fetch, rows);
			cfd_ranks_tell(ranks);
		}
		standard->compute(stats, fetch, rows, total);
	}
	PG_FINALLY();
	{
		if (ranks != NULL)
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

	/* The values of an index's expression would be temporary. Arrays have no statistics. */
	if (cfd_array_code(stats->attrtypid) != 0 || cfd_expression_is_analyzed(stats) || !std_typanalyze(stats))
		PG_RETURN_BOOL(false);
	if (cfd_type_code(stats->attrtypid) != 0)
	{
		standard = MemoryContextAlloc(stats->anl_context, sizeof(Standard));
		standard->compute = stats->compute_stats;
		standard->extra = stats->extra_data;
		stats->compute_stats = compute;
		stats->extra_data = standard;
	}
	PG_RETURN_BOOL(true);
}
