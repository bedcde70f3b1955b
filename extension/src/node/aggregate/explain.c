/*
 * explain.c
 *	  EXPLAIN output of ConfideAggregate.
 *
 * Invariants: as in state.h.
 */
#include "postgres.h"

#include "compat/explain.h"
#include "node/aggregate/state.h"
#include "utils/ruleutils.h"

static void
explain_keys(AggregateState *state, List *ancestors, ExplainState *es)
{
	CustomScan *plan = (CustomScan *) state->css.ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, &plan->scan.plan, ancestors);
	List	   *texts = NIL;

	for (int i = 0; i < list_length(state->key_sources); i++)
	{
		TargetEntry *target = list_nth_node(TargetEntry, plan->custom_scan_tlist, i);

		texts = lappend(texts, deparse_expression((Node *) target->expr, context, list_length(es->rtable) > 1 || es->verbose, false));
	}
	if (texts != NIL)
		ExplainPropertyList("Group Key", texts, es);
}

static void
explain_programs(AggregateState *state, ExplainState *es)
{
	List	   *texts = NIL;
	ListCell   *cell;

	foreach(cell, state->sources)
	{
		Source	   *source = lfirst(cell);

		if (source->program != NULL && source->program != state->filter)
			texts = lappend(texts, source->program->text);
	}
	if (state->filter != NULL && state->stage != CFD_AGG_FINAL)
		ExplainPropertyText("Keeper Filter", state->filter->text, es);
	if (texts != NIL && es->verbose)
		ExplainPropertyList("Keeper Programs", texts, es);
	if (state->having != NULL)
		ExplainPropertyText("Keeper Group Filter", state->having->text, es);
}

void
cfd_aggregate_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	AggregateState *state = (AggregateState *) node;

	if (state->stage != CFD_AGG_PARTIAL)
		explain_keys(state, ancestors, es);
	explain_programs(state, es);
	if (state->kept)
		ExplainPropertyText("Result", "not told", es);
	/* A worker's counters are lost when it exits. */
	if (!es->analyze || state->stage == CFD_AGG_PARTIAL)
		return;
	ExplainPropertyInteger("Batches", NULL, state->driver.batches, es);
	ExplainPropertyInteger("Rows Aggregated", NULL, state->total_rows, es);
	ExplainPropertyInteger("Values", NULL, state->total_rows * state->column_count, es);
	ExplainPropertyInteger("Bytes Sent", NULL, state->total_bytes, es);
	if (state->stage == CFD_AGG_FINAL)
		ExplainPropertyInteger("Aggregations Merged", NULL, state->total_merged, es);
	ExplainPropertyInteger("Groups", NULL, state->total_groups, es);
	if (state->passes > 1)
		ExplainPropertyInteger("Passes", NULL, state->passes, es);
	if (es->timing)
		ExplainPropertyFloat("Keeper Wait", "ms", INSTR_TIME_GET_MILLISEC(state->driver.waited), 3, es);
}
