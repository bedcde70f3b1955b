/*
 * compared.c
 *	  The comparisons that PostgreSQL makes on a page; see compared.h.
 *
 * Invariant: as in search.h.
 */
#include "postgres.h"

#include "index/compared.h"
#include "known/known.h"

static CfdFid
compared_fid(const CfdCompared *on, int number, AttrNumber column)
{
	if (on->fids != NULL)
		return on->fids[(column - 1) * on->count + number];
	return cfd_key_fid(on->index, cfd_page_key(on->page, number), column);
}

static void
compared_key(const CfdCompared *on, int number, int values)
{
	CfdPlace	within = {0, on->count};

	for (int i = 0; i < values; i++)
	{
		const CfdWanted *value = &on->wanted[i];
		int			order = number < value->place.less ? -1 : number < value->place.up_to ? 0 : 1;

		if (number < within.less || number >= within.up_to)
			return;
		if (value->fid != 0)
		{
			CfdFid		key = compared_fid(on, number, value->column);

			if (key != CFD_SEARCH_BELOW && key != CFD_SEARCH_ABOVE)
				cfd_known_put_order(&cfd_known[CFD_SCOPE_SEARCH], value->program, key, value->fid,
									CFD_ORDER_LESS << ((value->descending ? -order : order) + 1));
		}
		if (i + 1 < values && !cfd_is_beside(on->wanted, i + 1))
			within = value->place;
	}
}

void
cfd_compared_keys(const CfdCompared *on, int first, int last, int values)
{
	for (int i = Max(first, 0); i <= Min(last, on->count - 1); i++)
		compared_key(on, i, values);
}

void
cfd_compared_path(const CfdCompared *on, int before, int values)
{
	int			shift = on->leaf ? 0 : 1;
	int			low = 0;
	int			high = on->items + shift;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (middle >= shift)
			compared_key(on, middle - shift, values);
		if (middle - shift < before)
			low = middle + 1;
		else
			high = middle;
	}
	if (on->count > on->items)
		compared_key(on, on->items, values);
}

void
cfd_compared_again(const CfdCompared *on, CfdPlace equal, int greater, int values)
{
	int			low = equal.less;
	int			high = greater;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		compared_key(on, middle, values);
		if (middle < equal.up_to)
			low = middle + 1;
		else
			high = middle;
	}
}
