/*
 * places.h
 *	  Where FIDs of a table's columns are, physically: heap pages with all
 *	  versions of rows, pages of B-trees on all levels, statistics.
 *
 * Finds FIDs; what is done with them is the caller's business. The order of the
 * functions below is the order in which they must be called for a collection:
 * an index entry that appears after the heap has been read is of a row that was
 * read, and statistics that appear after that are of rows that were read.
 *
 * Invariants: no buffer is locked while a page's FIDs are handed over; no memory
 * is read outside a tuple, whatever its shape; a FID that is physically there all
 * the time while a function runs is found, and so is one that moves meanwhile,
 * as far as gc/collect.c says why.
 */
#ifndef CFD_GC_PLACES_H
#define CFD_GC_PLACES_H

#include "postgres.h"
#include "wire/wire.h"
#include "storage/buf.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

/* No page holds more FIDs. */
#define CFD_PAGE_FIDS (BLCKSZ / sizeof(CfdFid))

/* Takes the FIDs of a page, or of a row of statistics; called without locks. */
typedef void (*CfdFidSink) (void *arg, const CfdFid *fids, int count);

typedef struct CfdSearch
{
	CfdFidSink	sink;
	void	   *arg;
	void		(*page_done) (void *arg);	/* may be NULL */
	BufferAccessStrategy strategy;
	Snapshot	snapshot;		/* registered; see cfd_search_statistics */
} CfdSearch;

extern void cfd_search_heap(const CfdSearch *search, Relation table);
/* Whether pages of this index can hold FIDs. */
extern bool cfd_index_holds_fids(Relation index);
/* An error if the index is of a kind that may hold FIDs, and that we cannot read. */
extern void cfd_search_index(const CfdSearch *search, Relation index);
/*
 * Statistics that the snapshot sees, and those that came later. InvalidOid: of all
 * relations, since those of a parent table hold FIDs of its children.
 */
extern void cfd_search_statistics(const CfdSearch *search, Oid relation);

/* Whether the database has statistics of a parent table with its children. */
extern bool cfd_any_inherited_statistics(void);

#endif
