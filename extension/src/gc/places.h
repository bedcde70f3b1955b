/*
 * places.h
 *	  Physical search for the FIDs of a table's columns: heap pages with
 *	  all row versions, B-tree pages on all levels, statistics.
 *
 * Only finds FIDs; the caller decides what to do with them. A collection must
 * call the functions below in the order in which they are declared: an index
 * entry that appears after the heap was read belongs to a row that was read,
 * and so do statistics that appear after that.
 *
 * Invariants: no buffer is locked while a page's FIDs are passed on; no memory
 * outside a tuple is read, whatever its contents; a FID that is physically
 * present during the whole run of a function is found, and so is one that
 * moves meanwhile, under the conditions explained in gc/collect.c.
 */
#ifndef CFD_GC_PLACES_H
#define CFD_GC_PLACES_H

#include "postgres.h"
#include "wire/wire.h"
#include "storage/buf.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

/* Upper limit for the number of FIDs on a page. */
#define CFD_PAGE_FIDS (BLCKSZ / sizeof(CfdFid))

/* Receives the FIDs of a page or a row of statistics. No locks are held. */
typedef void (*CfdFidSink) (void *arg, const CfdFid *fids, int count);

typedef struct CfdSearch
{
	CfdFidSink	sink;
	void	   *arg;
	void		(*page_done) (void *arg);	/* may be NULL */
	BufferAccessStrategy strategy;
	Snapshot	snapshot;		/* registered; see cfd_search_statistics */
	bool		committed;		/* only rows of a table whose transactions have committed */
} CfdSearch;

extern void cfd_search_heap(const CfdSearch *search, Relation table);
/* Whether pages of this index can contain FIDs. */
extern bool cfd_index_holds_fids(Relation index);
/*
 * Raises an error if the index may contain FIDs but its access method is not
 * supported.
 */
extern void cfd_search_index(const CfdSearch *search, Relation index);
/*
 * Searches statistics that the snapshot sees, and later ones. InvalidOid:
 * those of all relations, since statistics of a parent table contain FIDs of
 * its children.
 */
extern void cfd_search_statistics(const CfdSearch *search, Oid relation);

/* Whether the database has inherited statistics (stainherit). */
extern bool cfd_any_inherited_statistics(void);

#endif
