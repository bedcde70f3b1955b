/*
 * quals.h
 *	  Which quals the keeper can evaluate, found out once in a planning (a table has many
 *	  paths, and each is asked about with the same quals), and what the planner thinks that
 *	  it costs.
 *
 * Invariants: what is told is what the compiler (program/compile.h) would tell; an estimate asks
 * neither keeper nor table.
 */
#ifndef CFD_PLAN_QUALS_H
#define CFD_PLAN_QUALS_H

#include "postgres.h"
#include "nodes/pathnodes.h"
#include "nodes/pg_list.h"
#include "program/compile.h"

/* confide.round_trip_cost, confide.batch_row_cost */
extern double cfd_round_trip_cost;
extern double cfd_batch_row_cost;

/* Rows of a table that the quals of a path to it are evaluated for. */
extern double cfd_rows_scanned(PlannerInfo *root, RelOptInfo *rel, Path *path);
/* Quals that are evaluated for so many rows by the batch. */
extern Cost cfd_batch_cost(double rows, List *quals);
extern void cfd_cost_init(void);

/* Whether an expression can be evaluated by the keeper, and has something for it to do. */
extern bool cfd_qual_compiles(Node *qual);
/* The program of quals that are evaluated together; NULL: they cannot be. */
extern CfdProgram *cfd_quals_program(List *quals);

#endif
