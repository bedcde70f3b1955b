/*
 * ahead.h
 *	  Batched searches of one B-tree for several scans that are about to
 *	  start.
 *
 * The arms of a BitmapOr are scans that run one after the other. A scan with
 * an array condition (IN) runs once per element, and the inner scan of a
 * nested loop once per outer row. Before the first of them runs, all of them
 * descend the tree side by side. That takes one round trip per level of the
 * tree, instead of one per level and scan. The scans find the answers when
 * they search (arms.h).
 *
 * Invariants: only what the scans of the statement will ask is asked in
 * advance, and for arrays at most twice as much; an answer is used only for
 * the same value and the same keys, and only until the next sweep of garbage.
 */
#ifndef CFD_INDEX_AHEAD_H
#define CFD_INDEX_AHEAD_H

#include "postgres.h"
#include "access/genam.h"
#include "access/relscan.h"
#include "wire/wire.h"
#include "nodes/execnodes.h"

/* A BitmapOr has been initialised: its scans may be searched for together. */
extern void cfd_ahead_plan(BitmapOrState *node);
/* One of these scans begins. */
extern void cfd_ahead_scan(IndexScanDesc scan);
/*
 * A scan is about to descend for an element of its array. "all" means that it
 * will reach every element.
 */
extern void cfd_ahead_array(IndexScanDesc scan, bool all);
/* ---------- outer rows of nested loops (outer.c) ---------- */

struct CfdArms;

/*
 * Maximum number of rows searched for together, and of index columns that they
 * supply values for.
 */
#define CFD_OUTER_ROWS_MAX 512
#define CFD_OUTER_COLUMNS_MAX 4

/*
 * Prepares for rows that will each start the index scan of plan node `inner`,
 * by equality on the first `columns` columns of the index.
 */
extern struct CfdArms *cfd_outer_begin(EState *state, int inner, int columns);
/* Discards the rows and the answers about them. */
extern void cfd_outer_clear(struct CfdArms *group);
/*
 * Adds a row, given by the types and values of its keys. A row with a NULL key
 * finds nothing and is skipped.
 */
extern void cfd_outer_row(struct CfdArms *group, const Oid *types, const Datum *values, const bool *nulls);
extern void cfd_outer_ask(struct CfdArms *group);
/* Registers an index scan of the plan once it has been initialised. */
extern void cfd_outer_link(PlanState *scan);
/* Number of round trips, for EXPLAIN ANALYZE. */
extern uint64 cfd_outer_round_trips(const struct CfdArms *group);

#endif
