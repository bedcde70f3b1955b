/*
 * envelopes.c
 *	  Envelopes of many values in one round trip: see envelopes.h.
 *
 * The first value that is written asks for its envelope and those of all behind it; where
 * an answer ends early (it is bounded, or a value has no envelope), the next one
 * does so again.
 *
 * Invariants: as in envelopes.h.
 */
#include "postgres.h"

#include "result/envelopes.h"
#include "session/channel.h"
#include "value/types.h"
#include "utils/memutils.h"

#define FIRST_ROOM 64

int
cfd_protected_columns(TupleDesc desc)
{
	int			columns = 0;

	for (int i = 0; i < desc->natts; i++)
		columns += cfd_type_code(TupleDescAttr(desc, i)->atttypid) != 0;
	return columns;
}

void
cfd_envelopes_begin(CfdEnvelopes *list, TupleDesc desc, MemoryContext answers)
{
	list->columns = 0;
	list->numbers = palloc(desc->natts * sizeof(AttrNumber));
	list->types = palloc(desc->natts);
	for (int i = 0; i < desc->natts; i++)
	{
		uint8		type = cfd_type_code(TupleDescAttr(desc, i)->atttypid);

		if (type == 0)
			continue;
		list->numbers[list->columns] = i + 1;
		list->types[list->columns++] = type;
	}
	list->room = Max(list->columns, FIRST_ROOM);
	list->asked = palloc((Size) list->room * sizeof(*list->asked));
	list->context = answers;
	list->answer = NULL;
	cfd_envelopes_clear(list);
}

void
cfd_envelopes_clear(CfdEnvelopes *list)
{
	if (list->answer != NULL)
		pfree(list->answer);
	list->answer = NULL;
	list->left = cfd_reader(NULL, 0);
	list->values = list->next = 0;
}

static void
note_value(CfdEnvelopes *list, CfdFid fid, uint8 type)
{
	if (list->values == list->room)
	{
		list->room *= 4;
		list->asked = repalloc(list->asked, (Size) list->room * sizeof(*list->asked));
	}
	list->asked[list->values++] = (CfdWireWanted) {.fid = fid,.t = type};
}

void
cfd_envelopes_note(CfdEnvelopes *list, TupleTableSlot *slot)
{
	for (int i = 0; i < list->columns; i++)
	{
		bool		is_null;
		Datum		value = slot_getattr(slot, list->numbers[i], &is_null);

		if (!is_null)
			note_value(list, DatumGetUInt64(value), list->types[i]);
	}
}

/* Asks for the next envelope and all behind it; false if there is none to be had so. */
static bool
cfd_envelopes_fetch(CfdEnvelopes *list)
{
	int			count = list->values - list->next;
	const char *answer;
	uint32		length;
	CfdReadGetEnvelopesAnswer read;

	if (count < 2)
		return false;
	answer = cfd_call(CFD_KIND_GET_ENVELOPES, NULL, 0, list->asked + list->next,
					  (uint64) count * sizeof(*list->asked), &length);
	if (length == 0)
		return false;
	if (list->answer != NULL)
		pfree(list->answer);
	list->answer = NULL;
	list->left = cfd_reader(NULL, 0);
	list->answer = MemoryContextAllocHuge(list->context, length);
	memcpy(list->answer, answer, length);
	CFD_DECODE(get_envelopes_answer, list->answer, length, &read);
	list->left = read.envelopes;
	return true;
}

bool
cfd_envelopes_next(CfdEnvelopes *list, CfdFid fid, uint8 type, const char **envelope, uint32 *length)
{
	const CfdWireWanted *entry = list->asked + list->next;
	CfdReadSealed sealed;

	if (list->next == list->values || entry->fid != fid || entry->t != type)
		return false;
	if (list->left.at == list->left.end && !cfd_envelopes_fetch(list))
	{
		list->next++;
		return false;
	}
	if (!cfd_read_sealed(&list->left, &sealed) || sealed.envelope_length == 0)
		cfd_violation("impossible length of an envelope");
	*envelope = (const char *) sealed.envelope;
	*length = sealed.envelope_length;
	list->next++;
	return true;
}
