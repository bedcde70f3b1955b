/*
 * switch.h
 *	  The switch of the family soft_: which side evaluates a qual, PostgreSQL
 *	  on the encodings (software) or the keeper, which opens the cells
 *	  (docs/families.md, "The switch"; Enc2DB, section 3.3).
 *
 * costs.c measures what operations cost; keeper.c asks the keeper whether it
 * has a column's key and how busy it is; decide.c decides; functions.c shows
 * all that. Plans and rows are of no concern here.
 *
 * Invariants: the keeper is chosen only if it has the keys of all columns
 * concerned and the session has a client; the keeper is asked for its state at
 * a bounded rate, however many batches are decided.
 */
#ifndef CFD_SWITCH_SWITCH_H
#define CFD_SWITCH_SWITCH_H

#include "postgres.h"
#include "nodes/pg_list.h"

/* Setting confide.soft_mode. */
typedef enum CfdSoftMode
{
	CFD_SOFT_SOFTWARE,
	CFD_SOFT_KEEPER,
	CFD_SOFT_STATIC,
	CFD_SOFT_ADAPTIVE
} CfdSoftMode;

typedef enum CfdSide
{
	CFD_SIDE_SOFTWARE,
	CFD_SIDE_KEEPER
} CfdSide;

#define CFD_SIDES 2

extern int	cfd_soft_mode;
/* Most keys in the quals of one scan; further quals remain with PostgreSQL. */
#define CFD_SWITCH_KEYS 8

/* The key of a column. */
typedef struct CfdSoftKey
{
	uint32		key;
	uint8		type;
	uint8		shape;
} CfdSoftKey;

/* What a row takes. */
typedef struct CfdWork
{
	int			orders;			/* comparisons by order encodings */
	int			equalities;		/* comparisons of sealed values */
	int			cells;			/* cells of a row that the keeper opens */
	int			count;			/* number of keys */
	CfdSoftKey	keys[CFD_SWITCH_KEYS];
} CfdWork;

/* Conversion to and from the form stored in a plan. */
extern List *cfd_work_list(const CfdWork *work);
extern CfdWork cfd_work_of_list(const List *list);
/* Records a key. Returns false if there are too many. */
extern bool cfd_work_add_key(CfdWork *work, const CfdSoftKey *key);

/* costs.c: nanoseconds of an operation on encodings, measured at first use. */
typedef struct CfdSoftCosts
{
	double		order;
	double		equality;
	double		addition;
	double		clock;			/* of looking at the clock twice */
} CfdSoftCosts;

extern const CfdSoftCosts *cfd_soft_costs(void);

/* keeper.c: what is known of the keeper. */
typedef struct CfdKeeperState
{
	bool		known;
	double		open;			/* nanoseconds: opening a cell and comparing it */
	double		round_trip;		/* nanoseconds */
	double		probe;			/* nanoseconds of the last probe */
	double		usual;			/* of the fastest one */
	double		busy;			/* how many times slower than usual it is; at least 1 */
	double		throttle;		/* confide.soft_throttle at the last probe */
	uint64		probes;			/* how often it has probed */
	uint64		faults;			/* segments that it has read back from disk */
	uint64		asked;			/* how often this session has asked */
} CfdKeeperState;

extern const CfdKeeperState *cfd_keeper_state(void);
/* Asks again if the last answer is old. Returns whether it did. */
extern bool cfd_keeper_look(const CfdWork *work);
/* Whether the keeper can evaluate this now. */
extern bool cfd_keeper_has(const CfdWork *work);
/* The same, asking again if the keeper did not have it: to be called before a statement is refused. */
extern bool cfd_keeper_has_by_now(const CfdWork *work);
/* The same, asking again whatever was answered before: to be called before rows are sent. */
extern bool cfd_keeper_confirms(const CfdWork *work);
extern void cfd_keeper_init(void);

/* decide.c */
typedef struct CfdDecisions
{
	uint64		batches[CFD_SIDES];
	uint64		rows[CFD_SIDES];
	uint64		switches;		/* changes of side while a statement ran */
	double		slower[CFD_SIDES];	/* observed time, divided by the expected one */
} CfdDecisions;

extern const CfdDecisions *cfd_decisions(void);
/*
 * For the planner: whether quals are to be given to the keeper, or may be
 * while the plan runs. Sets *cost, of all rows, in its units.
 */
extern bool cfd_switch_plan(const CfdWork *work, double rows, double *cost);
/* The side that evaluates the next rows. `before`: the one that has evaluated the last ones. */
extern CfdSide cfd_switch_first(const CfdWork *work, int rows);
extern CfdSide cfd_switch_next(const CfdWork *work, int rows, CfdSide before);
/* Records rows that were evaluated, for the counters. */
extern void cfd_switch_count(CfdSide side, int rows);
/* Records how long rows took, in nanoseconds. */
extern void cfd_switch_took(CfdSide side, const CfdWork *work, int rows, double took);
extern void cfd_switch_init(void);

#endif
