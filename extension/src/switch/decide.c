/*
 * decide.c
 *	  Decides which side evaluates; see switch.h.
 *
 * The expected time of a side is its measured costs times a factor: for the
 * keeper, how busy its probe says it is, or how much slower than expected the
 * last batches were, whichever is more; for PostgreSQL, the latter. While the
 * keeper is not used, what was observed of it is forgotten step by step, so that
 * it is tried again.
 *
 * Invariant: adaptive, the side changes only if the other one is expected to
 * be faster by MARGIN.
 */
#include "postgres.h"

#include "switch/switch.h"
#include "utils/guc.h"
#include "utils/plancache.h"

/* How much faster the other side must be expected to be. */
#define MARGIN 1.25
/* Weight of a new observation: one part in so many. */
#define WEIGHT 4
#define SLOWEST 1000.0
/* Nanoseconds of a comparison in a batch once the cells are open, as measured for identifiers (plan/quals.c). */
#define OPERATION 25
/*
 * Nanoseconds for a unit of the planner's cost: a row of a plain sequential
 * scan takes 58 and has the cost 0.018 (plan/quals.c).
 */
#define UNIT (58 / 0.018)

int			cfd_soft_mode = CFD_SOFT_SOFTWARE;

static CfdDecisions decisions = {.slower = {1, 1}};

const CfdDecisions *
cfd_decisions(void)
{
	return &decisions;
}

/* ---------- what a row takes ---------- */

List *
cfd_work_list(const CfdWork *work)
{
	List	   *list = list_make3_int(work->orders, work->equalities, work->cells);

	for (int i = 0; i < work->count; i++)
	{
		list = lappend_int(list, work->keys[i].key);
		list = lappend_int(list, work->keys[i].type);
		list = lappend_int(list, work->keys[i].shape);
	}
	return list;
}

CfdWork
cfd_work_of_list(const List *list)
{
	CfdWork		work = {
		.orders = linitial_int(list),.equalities = lsecond_int(list),.cells = lthird_int(list),
		.count = (list_length(list) - 3) / 3
	};

	for (int i = 0; i < work.count; i++)
		work.keys[i] = (CfdSoftKey) {
			.key = list_nth_int(list, 3 + 3 * i),.type = list_nth_int(list, 4 + 3 * i),
				.shape = list_nth_int(list, 5 + 3 * i)
		};
	return work;
}

bool
cfd_work_add_key(CfdWork *work, const CfdSoftKey *key)
{
	for (int i = 0; i < work->count; i++)
	{
		if (work->keys[i].key == key->key && work->keys[i].type == key->type && work->keys[i].shape == key->shape)
			return true;
	}
	if (work->count == CFD_SWITCH_KEYS)
		return false;
	work->keys[work->count++] = *key;
	return true;
}

/* ---------- expected times ---------- */

/* By the costs measured at start. */
static double
measured(CfdSide side, const CfdWork *work, double rows)
{
	const CfdSoftCosts *costs = cfd_soft_costs();
	const CfdKeeperState *keeper = cfd_keeper_state();

	if (side == CFD_SIDE_SOFTWARE)
		return rows * (work->orders * costs->order + work->equalities * costs->equality);
	return keeper->round_trip + rows * (work->cells * keeper->open + (work->orders + work->equalities) * OPERATION);
}

static double
expected(CfdSide side, const CfdWork *work, double rows)
{
	double		slower = decisions.slower[side];

	if (side == CFD_SIDE_KEEPER)
		slower = Max(slower, cfd_keeper_state()->busy) * cfd_keeper_state()->throttle;
	return measured(side, work, rows) * slower;
}

void
cfd_switch_took(CfdSide side, const CfdWork *work, int rows, double took)
{
	double		usual = measured(side, work, rows);
	double	   *slower = &decisions.slower[side];

	if (usual > 0 && took >= 0)
		*slower += (Min(took / usual, SLOWEST) - *slower) / WEIGHT;
}

/* ---------- decisions ---------- */

bool
cfd_switch_plan(const CfdWork *work, double rows, double *cost)
{
	double		software;
	double		keeper;

	if (cfd_soft_mode == CFD_SOFT_SOFTWARE || !cfd_keeper_has(work))
		return false;
	software = expected(CFD_SIDE_SOFTWARE, work, rows) / UNIT;
	keeper = expected(CFD_SIDE_KEEPER, work, rows) / UNIT;
	*cost = cfd_soft_mode == CFD_SOFT_ADAPTIVE ? Min(software, keeper) : keeper;
	return cfd_soft_mode != CFD_SOFT_STATIC || keeper < software;
}

CfdSide
cfd_switch_first(const CfdWork *work, int rows)
{
	if (cfd_soft_mode == CFD_SOFT_SOFTWARE || !cfd_keeper_has(work))
		return CFD_SIDE_SOFTWARE;
	if (cfd_soft_mode == CFD_SOFT_ADAPTIVE &&
		expected(CFD_SIDE_KEEPER, work, rows) >= expected(CFD_SIDE_SOFTWARE, work, rows))
		return CFD_SIDE_SOFTWARE;
	return cfd_keeper_confirms(work) ? CFD_SIDE_KEEPER : CFD_SIDE_SOFTWARE;
}

CfdSide
cfd_switch_next(const CfdWork *work, int rows, CfdSide before)
{
	CfdSide		other = before == CFD_SIDE_KEEPER ? CFD_SIDE_SOFTWARE : CFD_SIDE_KEEPER;

	if (cfd_soft_mode != CFD_SOFT_ADAPTIVE)
		return before;
	if (cfd_keeper_look(work) && before == CFD_SIDE_SOFTWARE)
		decisions.slower[CFD_SIDE_KEEPER] = (decisions.slower[CFD_SIDE_KEEPER] + 1) / 2;
	if (expected(other, work, rows) * MARGIN >= expected(before, work, rows))
		return before;
	if (other == CFD_SIDE_KEEPER && !cfd_keeper_confirms(work))
		return before;
	decisions.switches++;
	return other;
}

void
cfd_switch_count(CfdSide side, int rows)
{
	decisions.batches[side]++;
	decisions.rows[side] += rows;
}

/* ---------- setting ---------- */

static const struct config_enum_entry modes[] = {
	{"software", CFD_SOFT_SOFTWARE, false},
	{"keeper", CFD_SOFT_KEEPER, false},
	{"static", CFD_SOFT_STATIC, false},
	{"adaptive", CFD_SOFT_ADAPTIVE, false},
	{NULL, 0, false}
};

/* Plans depend on it. */
static void
assign_mode(int mode, void *extra)
{
	(void) extra;
	if (mode != cfd_soft_mode)
		ResetPlanCache();
}

void
cfd_switch_init(void)
{
	DefineCustomEnumVariable("confide.soft_mode",
							 "Sets which side evaluates comparisons of encoded columns (soft_).",
							 "The keeper does it only with columns whose key it was given.",
							 &cfd_soft_mode, CFD_SOFT_SOFTWARE, modes, PGC_USERSET, GUC_EXPLAIN,
							 NULL, assign_mode, NULL);
	cfd_keeper_init();
}
