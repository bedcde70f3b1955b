/*
 * ahead.h
 *	  Where the bounds of several scans belong in one B-tree, asked for together.
 *
 * The arms of a BitmapOr are scans that run one after the other, and so is a scan by an array
 * (`IN`) for each of its elements. Before the first of them, all descend side by side: a round trip
 * for each level of the tree, not for each level of each scan. What the keeper has said is a known
 * fact (known/known.h), which is found when the scans search.
 *
 * Invariants: what is asked is what the scans of the statement will ask, of an array never more than
 * twice as much; an answer counts only for the very same value and keys, and no longer than no
 * garbage is swept.
 */
#ifndef CFD_INDEX_AHEAD_H
#define CFD_INDEX_AHEAD_H

#include "postgres.h"
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

#endif
