/*
 * ranks.h
 *	  The order of many values of one type, declassified at once: values are
 *	  announced as they come, ranked when the first comparison needs it, and
 *	  compared without the keeper from then on.
 *
 * Only announced values are ever ranked: whoever announces one is about to sort
 * all of them.
 *
 * Invariant: an order that is given is the one the keeper's comparison would
 * give; what is not known here is not guessed.
 */
#ifndef CFD_ORDER_RANKS_H
#define CFD_ORDER_RANKS_H

#include "postgres.h"
#include "known/known.h"
#include "wire/wire.h"

typedef struct CfdRanks CfdRanks;

/* confide.enable_bulk_sort */
extern bool cfd_enable_bulk_sort;
/* confide.bulk_sort_rows */
extern int	cfd_bulk_sort_rows;

/* Lives as long as the memory context, in the keeper too. */
extern CfdRanks *cfd_ranks_create(MemoryContext context, uint8 type);
extern void cfd_ranks_announce(CfdRanks *ranks, CfdFid fid);
/* Whether the order of the two is known, or could be found out; then gives it. */
extern bool cfd_ranks_compare(CfdRanks *ranks, CfdFid a, CfdFid b, int *order);
/* From now on comparison functions know it too (known/known.h), while it lives and until no more. */
extern void cfd_ranks_tell(CfdRanks *ranks);
extern void cfd_ranks_tell_no_more(CfdRanks *ranks);

#endif
