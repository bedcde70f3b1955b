/*
 * remembered.h
 *	  Descents of a B-tree by pages that the keeper remembers.
 *
 * A page's keys are sent once; later searches name the page, and the keeper continues to the pages
 * below that it remembers, as far as the values lead there. So a descent over unchanged pages takes
 * one round trip instead of one per level.
 *
 * Does not read pages, and does not decide where PostgreSQL descends to (search.c).
 *
 * Invariant: an answer about a page is used only if the page, as copied now, has the same bytes as
 * when its keys were sent, and the plain values are at the same places. Otherwise its keys are sent
 * again.
 */
#ifndef CFD_INDEX_REMEMBERED_H
#define CFD_INDEX_REMEMBERED_H

#include "postgres.h"
#include "index/pages.h"
#include "utils/rel.h"
#include "wire/wire.h"

/* confide.enable_page_memory */
extern bool cfd_enable_page_memory;

/*
 * Values to search for in the first protected columns of an index, which only plain columns may
 * precede, and the state of the descent.
 */
typedef struct CfdDescent
{
	int			values;
	int			plain;			/* number of plain columns before them */
	/* The run of keys on the current page that equal the plain values. */
	int			less;
	int			up_to;
	CfdWireSought sought[CFD_SEARCH_VALUES_MAX];
	/* The page that was examined last, and the number of the child that is next. */
	uint32		above;
	BlockNumber block;
	uint32		child;
	/* The last answer. */
	int			levels;
	uint32		pages[CFD_SEARCH_LEVELS_MAX];
	CfdWirePlace places[CFD_SEARCH_LEVELS_MAX * CFD_SEARCH_VALUES_MAX];
} CfdDescent;

/* Starts a descent; the caller fills in the values. */
extern void cfd_descent_begin(CfdDescent *descent, int plain, int values);
/* Whether the keeper has not declined recently. */
extern bool cfd_descent_pays(void);
/*
 * Whether a page below the first one was read that is probably next and is not remembered. Such a
 * page is better sent together with the one above.
 */
extern bool cfd_pages_guess_other(const CfdPages *pages, Relation index);
/*
 * Returns the places of the values among the keys of the page from `less` up to `up_to`, after a
 * request if necessary; NULL if the keeper declines.
 */
extern const CfdWirePlace *cfd_descent_places(CfdDescent *descent, Relation index, const CfdKeys *page);
/*
 * Moves to the child where the last value belongs. If the value equals a bound, or the page was not
 * asked about with cfd_descent_places, the child is unknown.
 */
extern void cfd_descent_step(CfdDescent *descent, const CfdKeys *page, uint32 less, uint32 up_to);

#endif
