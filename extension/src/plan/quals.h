/*
 * quals.h
 *	  Which quals the keeper can evaluate, found out once in a planning: a table has many
 *	  paths, and each is asked about with the same quals.
 *
 * Invariant: what is told is what the compiler (program/compile.h) would tell.
 */
#ifndef CFD_PLAN_QUALS_H
#define CFD_PLAN_QUALS_H

#include "postgres.h"
#include "nodes/pg_list.h"

/* Whether an expression can be evaluated by the keeper, and has something for it to do. */
extern bool cfd_qual_compiles(Node *qual);
/* The keeper's operations in quals that are evaluated together; -1: they cannot be. */
extern int	cfd_quals_operations(List *quals);

#endif
