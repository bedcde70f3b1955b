/*
 * explain.c
 *	  EXPLAIN output of ConfideScan.
 *
 * Invariant: constants appear only in their SQL form, as envelopes.
 */
#include "postgres.h"

#include "compat/explain.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "node/scan/state.h"
#include "node/scan/switched.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

/* Name of the table column behind a column of the child. */
static const char *
column_name(EState *estate, List *columns, AttrNumber number)
{
	TargetEntry *entry = list_nth(columns, number - 1);
	Var		   *var = (Var *) entry->expr;

	if (!IsA(var, Var) || IS_SPECIAL_VARNO(var->varno))
		return "expression";
	return get_attname(exec_rt_fetch(var->varno, estate)->relid, var->varattno, false);
}

static void
explain_inputs(CfdScanState *state, const CfdCompiler *compiler, List *columns, ExplainState *es)
{
	EState	   *estate = state->css.ss.ps.state;
	List	   *inputs = NIL;

	for (int i = 0; i < compiler->count; i++)
	{
		const CfdInput *input = &compiler->inputs[i];

		if (IsA(input->expr, Var))
			inputs = lappend(inputs, psprintf("#%d %s", i + 1, column_name(estate, columns, ((Var *) input->expr)->varattno)));
		else if (!input->constant)
			inputs = lappend(inputs, psprintf("#%d expression", i + 1));
	}
	ExplainPropertyList("Inputs", inputs, es);
}

/* Shows the quals in their SQL form. */
static void
explain_quals(CustomScanState *node, List *ancestors, ExplainState *es)
{
	Plan	   *plan = node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, plan, ancestors);
	Node	   *all = (Node *) make_ands_explicit(linitial(((CustomScan *) plan)->custom_exprs));
	bool		prefix = list_length(es->rtable) > 1 || es->verbose;

	ExplainPropertyText(((CfdScanState *) node)->switched != NULL ? "Encoded Filter" : "Protected Filter", deparse_expression(all, context, prefix, false), es);
}

static void
explain_switch(const CfdSwitched *switched, ExplainState *es)
{
	uint64		software = switched->rows[CFD_SIDE_SOFTWARE];
	uint64		keeper = switched->rows[CFD_SIDE_KEEPER];

	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		appendStringInfoSpaces(es->str, es->indent * 2);
		appendStringInfo(es->str, "Evaluated in software: " UINT64_FORMAT " rows, in keeper: " UINT64_FORMAT " rows\n",
						 software, keeper);
	}
	else
	{
		ExplainPropertyUInteger("Rows Evaluated in Software", NULL, software, es);
		ExplainPropertyUInteger("Rows Evaluated in Keeper", NULL, keeper, es);
	}
	ExplainPropertyUInteger("Rows Removed in Software", NULL, switched->removed, es);
	ExplainPropertyUInteger("Changes of Side", NULL, switched->switches, es);
}

static void
explain_counters(CfdScanState *state, ExplainState *es)
{
	ExplainPropertyUInteger("Batches", NULL, state->driver.batches, es);
	ExplainPropertyUInteger("Round Trips", NULL, state->driver.round_trips, es);
	if (state->filter != NULL)
	{
		ExplainPropertyUInteger("Rows Removed by Program", NULL, state->removed, es);
		ExplainPropertyUInteger("Bits Declassified", NULL, state->bits, es);
	}
	if (state->computed != NIL)
		ExplainPropertyUInteger("Values Computed", NULL, state->values, es);
	if (es->timing)
		ExplainPropertyFloat("Time Waited", "ms", INSTR_TIME_GET_MILLISEC(state->driver.waited), 3, es);
}

void
cfd_scan_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	CfdScanState *state = (CfdScanState *) node;
	List	   *columns = ((CustomScan *) node->ss.ps.plan)->custom_scan_tlist;
	ListCell   *cell;

	if (state->filter != NULL)
	{
		explain_quals(node, ancestors, es);
		ExplainPropertyText("Program", state->filter->text, es);
		explain_inputs(state, state->qual_inputs, columns, es);
	}
	foreach(cell, state->computed)
		ExplainPropertyText("Output Program", ((CfdProgram *) lfirst(cell))->text, es);
	if (es->analyze && state->switched != NULL)
		explain_switch(state->switched, es);
	if (es->analyze)
		explain_counters(state, es);
}
