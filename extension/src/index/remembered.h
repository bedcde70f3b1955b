/*
 * remembered.h
 *	  Descents of a B-tree by pages that the keeper remembers.
 *
 * A page's keys are sent once; later searches name the page, and the keeper goes on to the pages below that it remembers,
 * as far as the values lead there: a round trip for a descent whose pages have not changed since, in place of one for
 * each level.
 *
 * Does not read pages, nor decide where PostgreSQL descends to (search.c).
 *
 * Invariant: an answer about a page counts only if the page, as it was copied now, has the same bytes as when its keys
 * were sent. Otherwise its keys are sent again.
 */
#ifndef CFD_INDEX_REMEMBERED_H
#define CFD_INDEX_REMEMBERED_H

#include "postgres.h"
#include "index/pages.h"
#include "utils/rel.h"
#include "wire/wire.h"

/* confide.enable_page_memory */
extern bool cfd_enable_page_memory;

/* What is sought in the first columns of an index, all of them protected, and what is known of it. */
typedef struct CfdDescent
{
	int			values;
	CfdWireSought sought[CFD_SEARCH_VALUES_MAX];
	/* The page that was looked at last, and which child of it the next one is. */
	uint32		above;
	uint32		child;
	/* The last answer. */
	int			levels;
	uint32		pages[CFD_SEARCH_LEVELS_MAX];
	CfdWirePlace places[CFD_SEARCH_LEVELS_MAX * CFD_SEARCH_VALUES_MAX];
} CfdDescent;

/* Begins a descent; the values are put in by the caller. */
extern void cfd_descent_begin(CfdDescent *descent, int values);
/* Whether it is worth asking so: the keeper has not declined lately. */
extern bool cfd_descent_pays(void);
/*
 * Whether a page below the first one was read that is likely to come next and is not remembered: it is better sent with
 * the one above.
 */
extern bool cfd_pages_guess_other(const CfdPages *pages, Relation index);
/*
 * The places of the values among the keys of the page, perhaps asked for now; NULL: the keeper does not tell so.
 */
extern const CfdWirePlace *cfd_descent_places(CfdDescent *descent, Relation index, const CfdKeys *page);
/* The next page is the child where the last value belongs, unless it equals a bound: then nobody knows here. */
extern void cfd_descent_step(CfdDescent *descent, uint32 less, uint32 up_to);

#endif
