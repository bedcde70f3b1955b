/*
 * known.c
 *	  What is known: see known.h.
 *
 * Subjects are few: those of a search, one of a sort, one of an estimate. So they are looked
 * through one after the other, and the values compared with them are found by hash.
 *
 * Invariants: as in known.h; a stamp is never used twice.
 */
#include "postgres.h"

#include "known/known.h"
#include "session/pins.h"

typedef struct Known
{
	int			count;
	CfdSubject	subjects[CFD_SUBJECTS_MAX];
} Known;

static Known known[CFD_SCOPES];
static uint64 last_stamp = 0;

int			cfd_known_subjects = 0;
CfdOrder   *cfd_known_orders[CFD_ORDERS] = {NULL};
CfdEnvelopeSource cfd_known_envelope = NULL;

CfdSubject *
cfd_known_subject(CfdScope scope, CfdFid value, CfdAnswer *answers, uint32 entries)
{
	CfdSubject *subject = &known[scope].subjects[known[scope].count];

	Assert(known[scope].count < CFD_SUBJECTS_MAX && (entries & (entries - 1)) == 0);
	*subject = (CfdSubject) {
		.value = value,
		.stamp = ++last_stamp,
		.sweeps = cfd_sweeps(),
		.mask = entries - 1,
		.answers = answers,
	};
	known[scope].count++;
	cfd_known_subjects++;
	return subject;
}

void
cfd_known_forget(CfdScope scope)
{
	cfd_known_subjects -= known[scope].count;
	known[scope].count = 0;
}

void
cfd_known_forget_statement(void)
{
	cfd_known_forget(CFD_SCOPE_SEARCH);
	cfd_known_forget(CFD_SCOPE_SORTED);
}

void
cfd_known_forget_builds(void)
{
	cfd_known_orders[CFD_ORDER_BUILD] = NULL;
}

void
cfd_known_drop_order(const CfdOrder *order)
{
	for (int i = 0; i < CFD_ORDERS; i++)
	{
		if (cfd_known_orders[i] == order)
			cfd_known_orders[i] = NULL;
	}
}

/* How a value compares with a subject, if that is known. */
static inline bool
find(const CfdSubject *subject, CfdFid fid, int *order)
{
	const CfdAnswer *entry = cfd_known_entry(subject, fid);

	if (entry->stamp != subject->stamp)
		return false;
	*order = (int) entry->order - 1;
	return true;
}

static bool
find_test(const Known *scope, Oid function, CfdFid a, CfdFid b, uint64 sweeps, bool *holds)
{
	for (int i = 0; i < scope->count; i++)
	{
		const CfdSubject *subject = &scope->subjects[i];
		int			order;

		if (subject->test != function || subject->sweeps != sweeps)
			continue;
		if ((subject->side != CFD_FIRST && subject->value == b && find(subject, a, &order)) ||
			(subject->side != CFD_SECOND && subject->value == a && find(subject, b, &order)))
		{
			*holds = ((subject->holds >> (order + 1)) & 1) != 0;
			return true;
		}
	}
	return false;
}

bool
cfd_known_find_test(Oid function, CfdFid a, CfdFid b, bool *holds)
{
	uint64		sweeps = cfd_sweeps();

	for (int scope = 0; scope < CFD_SCOPES; scope++)
	{
		if (find_test(&known[scope], function, a, b, sweeps, holds))
			return true;
	}
	return false;
}

bool
cfd_known_find_compared(CfdFid a, CfdFid b, int *order)
{
	const Known *scope = &known[CFD_SCOPE_SEARCH];
	uint64		sweeps = cfd_sweeps();

	for (int i = 0; i < scope->count; i++)
	{
		const CfdSubject *subject = &scope->subjects[i];

		if (subject->value == b && subject->sweeps == sweeps && find(subject, a, order))
			return true;
	}
	return false;
}

bool
cfd_known_find_ordered(CfdFid a, CfdFid b, int *order)
{
	for (int i = 0; i < CFD_ORDERS; i++)
	{
		CfdOrder   *known_order = cfd_known_orders[i];

		if (known_order != NULL && known_order->compare(known_order, a, b, order))
			return true;
	}
	return false;
}
