/*
 * ahead.h
 *	  Where the bounds of several scans belong in one B-tree, asked for together.
 *
 * The arms of a BitmapOr are scans that run one after the other, and so is a scan by an array
 * (`IN`) for each of its elements, and the inner scan of a nested loop for each outer row. Before the first of
 * them, all descend side by side: a round trip for each level of the tree, not for each level of each scan. What the keeper has said is a known
 * fact (known/known.h), which is found when the scans search.
 *
 * Invariants: what is asked is what the scans of the statement will ask, of an array never more than
 * twice as much; an answer counts only for the very same value and keys, and no longer than no
 * garbage is swept.
 */
#ifndef CFD_INDEX_AHEAD_H
#define CFD_INDEX_AHEAD_H

#include "postgres.h"
#include "access/genam.h"
#include "access/relscan.h"
#include "wire/wire.h"
#include "nodes/execnodes.h"

/* A plan's BitmapOr has been started: its scans may be asked for together. */
extern void cfd_ahead_plan(BitmapOrState *node);
/* One of its scans begins. */
extern void cfd_ahead_scan(IndexScanDesc scan);
/* A scan is about to descend by an element of its array; all: it will come to all of them. */
extern void cfd_ahead_array(IndexScanDesc scan, bool all);
/* Whether it was asked about ahead for this scan: what is known is of single pages. */
extern bool cfd_ahead_asked(IndexScanDesc scan);

/* ---------- outer rows (outer.c) ---------- */

struct CfdArms;

/* The most rows that are asked about together, and columns of the index that they give values for. */
#define CFD_OUTER_ROWS_MAX 512
#define CFD_OUTER_COLUMNS_MAX 4

/* Rows of a plan are about to begin the scan of an inner node, by equality in an index's first columns. */
extern struct CfdArms *cfd_outer_begin(EState *state, int inner, int columns);
/* Other rows come: what was asked about those before is known no longer. */
extern void cfd_outer_clear(struct CfdArms *group);
/* A row; types of its values. One with a NULL looks for nothing. */
extern void cfd_outer_row(struct CfdArms *group, const Oid *types, const Datum *values, const bool *nulls);
extern void cfd_outer_ask(struct CfdArms *group);
/* The plan's index scans exist. */
extern void cfd_outer_link(PlanState *scan);
/* For EXPLAIN ANALYZE. */
extern uint64 cfd_outer_round_trips(const struct CfdArms *group);

#endif
