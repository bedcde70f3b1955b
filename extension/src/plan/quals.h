/*
 * quals.h
 *	  Which quals the keeper can evaluate, and at what estimated cost.
 *
 * The answer is cached per planning, because a table has many paths with the
 * same quals.
 *
 * Invariants: the answer is the one that the compiler (program/compile.h)
 * would give; estimating a cost accesses neither the keeper nor the table.
 */
#ifndef CFD_PLAN_QUALS_H
#define CFD_PLAN_QUALS_H

#include "postgres.h"
#include "nodes/pathnodes.h"
#include "nodes/pg_list.h"
#include "program/compile.h"

/* Settings confide.round_trip_cost and confide.batch_row_cost. */
extern double cfd_round_trip_cost;
extern double cfd_batch_row_cost;

/* Number of rows for which the quals of a path to the table are evaluated. */
extern double cfd_rows_scanned(PlannerInfo *root, RelOptInfo *rel, Path *path);
/* Cost of evaluating quals for so many rows in batches. */
extern Cost cfd_batch_cost(double rows, List *quals);
extern void cfd_cost_init(void);

/*
 * Whether the keeper can evaluate an expression, and the expression involves
 * the keeper at all.
 */
extern bool cfd_qual_compiles(Node *qual);
/* The program that evaluates the quals together, or NULL if there is none. */
extern CfdProgram *cfd_quals_program(List *quals);

#endif
