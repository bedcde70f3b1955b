/*
 * functions.c
 *	  SQL function behind the view confide_stat_soft_mode.
 *
 * Invariant: shows times and counts, no values and no keys.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "switch/switch.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/tuplestore.h"

static void
put(ReturnSetInfo *rsinfo, const char *name, const char *value)
{
	Datum		values[2] = {CStringGetTextDatum(name), CStringGetTextDatum(value)};
	bool		nulls[2] = {false, false};

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

static void
put_number(ReturnSetInfo *rsinfo, const char *name, double value, int digits)
{
	put(rsinfo, name, psprintf("%.*f", digits, value));
}

PG_FUNCTION_INFO_V1(cfd_stat_soft_mode);
Datum
cfd_stat_soft_mode(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const CfdSoftCosts *costs = cfd_soft_costs();
	const CfdKeeperState *keeper = cfd_keeper_state();
	const CfdDecisions *decisions = cfd_decisions();

	InitMaterializedSRF(fcinfo, 0);
	put(rsinfo, "mode", GetConfigOption("confide.soft_mode", false, false));
	put(rsinfo, "evaluates", cfd_soft_mode == CFD_SOFT_SOFTWARE || !keeper->known ? "software" :
		cfd_soft_mode == CFD_SOFT_KEEPER ? "keeper" : "either");
	put_number(rsinfo, "software.order_ns", costs->order, 1);
	put_number(rsinfo, "software.equality_ns", costs->equality, 1);
	put_number(rsinfo, "software.addition_ns", costs->addition, 1);
	put_number(rsinfo, "software.slower", decisions->slower[CFD_SIDE_SOFTWARE], 2);
	put_number(rsinfo, "software.batches", decisions->batches[CFD_SIDE_SOFTWARE], 0);
	put_number(rsinfo, "software.rows", decisions->rows[CFD_SIDE_SOFTWARE], 0);
	put_number(rsinfo, "keeper.open_ns", keeper->open, 0);
	put_number(rsinfo, "keeper.round_trip_ns", keeper->round_trip, 0);
	put_number(rsinfo, "keeper.probe_ns", keeper->probe, 0);
	put_number(rsinfo, "keeper.usual_probe_ns", keeper->usual, 0);
	put_number(rsinfo, "keeper.busy", keeper->busy, 2);
	put_number(rsinfo, "keeper.probes", keeper->probes, 0);
	put_number(rsinfo, "keeper.segment_faults", keeper->faults, 0);
	put_number(rsinfo, "keeper.asked", keeper->asked, 0);
	put_number(rsinfo, "keeper.slower", decisions->slower[CFD_SIDE_KEEPER], 2);
	put_number(rsinfo, "keeper.batches", decisions->batches[CFD_SIDE_KEEPER], 0);
	put_number(rsinfo, "keeper.rows", decisions->rows[CFD_SIDE_KEEPER], 0);
	put_number(rsinfo, "switches", decisions->switches, 0);
	return (Datum) 0;
}
