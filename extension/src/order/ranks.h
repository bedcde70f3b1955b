/*
 * ranks.h
 *	  The order of many values of one type, declassified in one step.
 *
 * Values are announced as they arrive. The first comparison that needs it has
 * them ranked. From then on they are compared without the keeper. Only
 * announced values are ranked; whoever announces values is about to sort all
 * of them.
 *
 * Invariant: a reported order is the one that the keeper's comparison would
 * give; nothing is guessed.
 */
#ifndef CFD_ORDER_RANKS_H
#define CFD_ORDER_RANKS_H

#include "postgres.h"
#include "known/known.h"
#include "wire/wire.h"

typedef struct CfdRanks CfdRanks;

/* Setting confide.enable_bulk_sort. */
extern bool cfd_enable_bulk_sort;
/* Setting confide.bulk_sort_rows. */
extern int	cfd_bulk_sort_rows;

/* Lives as long as the memory context, in the keeper as well. */
extern CfdRanks *cfd_ranks_create(MemoryContext context, uint8 type);
extern void cfd_ranks_announce(CfdRanks *ranks, CfdFid fid);
/*
 * Gets the order of two values. Returns false if it is unknown and cannot be
 * found out by ranking.
 */
extern bool cfd_ranks_compare(CfdRanks *ranks, CfdFid a, CfdFid b, int *order);
/*
 * Make the order available to comparison functions (known/known.h) and stop
 * that again. It also stops with the lifetime of the ranks.
 */
extern void cfd_ranks_tell(CfdRanks *ranks);
extern void cfd_ranks_tell_no_more(CfdRanks *ranks);

#endif
