/*
 * envelopes.c
 *	  Fetching the envelopes of many values in one round trip; see
 *	  envelopes.h.
 *
 * The first value that is written requests its own envelope and those of all
 * values after it. If the answer ends early, because it is limited in size or
 * a value has no envelope, the next value repeats that.
 *
 * For a small result, envelopes in the delivery cache (delivery.h), and the
 * client's own of what the transaction has written (adopted.h), are not
 * requested. The others are, even a single one, in a form that can be cached
 * or that brings the client the column's key, and with them those of other
 * columns of the same rows (beside.h).
 *
 * Invariants: as in envelopes.h.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "cell/cell.h"
#include "value/adopted.h"
#include "value/delivery.h"
#include "value/kept.h"
#include "result/envelopes.h"
#include "session/channel.h"
#include "value/types.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#define FIRST_ROOM 64

/* An envelope found for a value. */
typedef struct CfdGiven
{
	const char *envelope;		/* NULL: to be requested alone */
	uint32		length;
	bool		keyed;			/* contains its column's key */
} CfdGiven;

int
cfd_protected_columns(TupleDesc desc)
{
	int			columns = 0;

	for (int i = 0; i < desc->natts; i++)
		columns += cfd_type_code(TupleDescAttr(desc, i)->atttypid) != 0;
	return columns;
}

int
cfd_cell_columns(TupleDesc desc)
{
	int			columns = 0;

	for (int i = 0; cfd_channel.had_client && i < desc->natts; i++)
		columns += cfd_cell_code(TupleDescAttr(desc, i)->atttypid) != 0;
	return columns;
}

/*
 * Whether the text of such a value may contain the text of a protected one,
 * which the client does not open: records, arrays of records, domains over
 * records.
 */
static bool
may_hold_values(Oid type)
{
	if (type < FirstGenbkiObjectId)
		return type == RECORDOID || type == RECORDARRAYOID || type == ANYARRAYOID;
	return (get_typtype(type) != TYPTYPE_BASE && get_typtype(type) != TYPTYPE_ENUM) ||
		OidIsValid(get_element_type(type));
}

void
cfd_envelopes_begin(CfdEnvelopes *list, TupleDesc desc, MemoryContext answers, bool remote, bool cells)
{
	list->remote = remote;
	list->columns = 0;
	list->numbers = palloc(desc->natts * sizeof(AttrNumber));
	list->types = palloc(desc->natts);
	list->cells = palloc(desc->natts * sizeof(bool));
	for (int i = 0; i < desc->natts; i++)
	{
		uint8		type = cfd_type_code(TupleDescAttr(desc, i)->atttypid);
		bool		cell = cells && type == 0 && cfd_channel.had_client && cfd_cell_code(TupleDescAttr(desc, i)->atttypid) != 0;

		if (cell)
			type = cfd_cell_code(TupleDescAttr(desc, i)->atttypid);
		if (type == 0)
		{
			list->remote &= !may_hold_values(TupleDescAttr(desc, i)->atttypid);
			continue;
		}
		list->numbers[list->columns] = i + 1;
		list->cells[list->columns] = cell;
		list->types[list->columns++] = type;
	}
	list->room = Max(list->columns, FIRST_ROOM);
	list->asked = palloc((Size) list->room * sizeof(*list->asked));
	list->context = answers;
	list->answer = NULL;
	list->given = NULL;
	list->beside = NULL;
	cfd_envelopes_clear(list);
}

void
cfd_envelopes_clear(CfdEnvelopes *list)
{
	if (list->answer != NULL)
		pfree(list->answer);
	if (list->given != NULL)
		pfree(list->given);
	list->given = NULL;
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

		if (is_null)
			continue;
		if (list->cells[i])
			value = UInt64GetDatum(cfd_cell_open(NULL, PG_DETOAST_DATUM_PACKED(value), list->types[i]));
		note_value(list, DatumGetUInt64(value), list->types[i]);
	}
}

/*
 * Copies a row into a virtual slot, with cells replaced by loose ones: the
 * keeper opens them without being waited for.
 */
void
cfd_envelopes_open_cells(const CfdEnvelopes *list, TupleTableSlot *row, TupleTableSlot *out)
{
	int			columns = row->tts_tupleDescriptor->natts;

	slot_getallattrs(row);
	ExecClearTuple(out);
	memcpy(out->tts_values, row->tts_values, columns * sizeof(Datum));
	memcpy(out->tts_isnull, row->tts_isnull, columns * sizeof(bool));
	for (int i = 0; i < list->columns; i++)
	{
		int			at = list->numbers[i] - 1;
		CfdFid		fid;

		if (!list->cells[i] || out->tts_isnull[at])
			continue;
		fid = cfd_cell_open(NULL, PG_DETOAST_DATUM_PACKED(out->tts_values[at]), list->types[i]);
		out->tts_values[at] = PointerGetDatum(cfd_cell_loose(fid));
	}
	ExecStoreVirtualTuple(out);
}

/* Requests envelopes. Returns false if none could be had in a batch. */
static bool
cfd_envelopes_ask(CfdEnvelopes *list, uint64 period, const CfdWireWanted *wanted, int count)
{
	CfdWireGetEnvelopes body = {.period = period};
	const char *answer;
	uint32		length;
	CfdReadGetEnvelopesAnswer read;

	answer = cfd_call(CFD_KIND_GET_ENVELOPES, &body, sizeof(body), wanted,
					  (uint64) count * sizeof(*wanted), &length);
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

static CfdReadSealed
next_sealed(CfdEnvelopes *list)
{
	CfdReadSealed sealed;

	if (!cfd_read_sealed(&list->left, &sealed) || sealed.envelope_length == 0)
		cfd_violation("impossible length of an envelope");
	return sealed;
}

/*
 * Requests the next envelope and all after it. Returns false if that is not
 * possible.
 */
static bool
cfd_envelopes_fetch(CfdEnvelopes *list)
{
	int			count = list->values - list->next;

	if (count < 2)
		return false;
	return cfd_envelopes_ask(list, 0, list->asked + list->next, count);
}

/* ---------- small results ---------- */

/*
 * Form in which to request a value. Only one value per column brings the
 * column's key.
 */
static uint8
form_of(CfdFid fid, const CfdWireWanted *before, int count)
{
	uint8		form = cfd_delivery_form(fid);

	if (form != CFD_DELIVERY_KEYED)
		return form;
	for (int i = 0; i < count; i++)
	{
		if (before[i].form == CFD_DELIVERY_KEYED && cfd_fid_partition(before[i].fid) == cfd_fid_partition(fid))
			return CFD_DELIVERY_SESSION;
	}
	return form;
}

static bool
is_wanted(CfdFid fid, const CfdWireWanted *wanted, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (wanted[i].fid == fid)
			return true;
	}
	return false;
}

/*
 * Adds other values of the rows, as far as the client has their columns' keys
 * and their envelopes are not in the cache. Returns how many are wanted then.
 */
static int
add_beside(const CfdBeside *beside, uint64 period, CfdWireWanted *wanted, int count)
{
	for (int i = 0; i < beside->values && count < CFD_BESIDE_MAX; i++)
	{
		const CfdWireWanted *one = &beside->value[i];

		if (cfd_delivery_form(one->fid) == CFD_DELIVERY_DELIVERY &&
			cfd_kept_get(period, one->fid, one->t, NULL) == 0 && !is_wanted(one->fid, wanted, count))
			wanted[count++] = *one;
	}
	return count;
}

/*
 * Requests the envelopes that were not in the cache. `numbers` are the
 * positions of these values in list->given. Envelopes of other values of the
 * rows come last, so that an answer that ends at one of them is complete.
 */
static void
ask_for_rest(CfdEnvelopes *list, uint64 period, CfdWireWanted *wanted, const int *numbers, int count)
{
	int			all = list->beside == NULL ? count : add_beside(list->beside, period, wanted, count);

	if (!cfd_envelopes_ask(list, period, wanted, all))
		return;
	for (int i = 0; i < count && list->left.at != list->left.end; i++)
	{
		CfdGiven   *given = &list->given[numbers[i]];
		CfdReadSealed sealed = next_sealed(list);

		given->envelope = (const char *) sealed.envelope;
		given->length = sealed.envelope_length;
		given->keyed = cfd_delivery_came(period, wanted[i].fid, wanted[i].t, wanted[i].form,
										 given->envelope, given->length);
	}
	for (int i = count; i < all && list->left.at != list->left.end; i++)
	{
		CfdReadSealed sealed = next_sealed(list);

		cfd_delivery_came(period, wanted[i].fid, wanted[i].t, wanted[i].form,
						  (const char *) sealed.envelope, sealed.envelope_length);
	}
	list->left = cfd_reader(NULL, 0);
}

/*
 * Finds the envelopes of the remaining values if they are few. Returns false
 * otherwise.
 */
static bool
cfd_envelopes_give(CfdEnvelopes *list)
{
	CfdWireWanted wanted[CFD_DELIVERY_VALUES_MAX];
	int			numbers[CFD_DELIVERY_VALUES_MAX];
	int			count = list->values - list->next;
	int			missing = 0;
	uint64		period;
	MemoryContext before;

	if (!list->remote || count > CFD_DELIVERY_VALUES_MAX)
		return false;
	period = cfd_delivery_period();
	if (period == 0)
		return false;
	before = MemoryContextSwitchTo(list->context);
	list->given = palloc0(count * sizeof(CfdGiven));
	list->given_from = list->next;
	list->period = period;
	for (int i = 0; i < count; i++)
	{
		const CfdWireWanted *one = &list->asked[list->next + i];
		CfdGiven   *given = &list->given[i];
		uint8		form = form_of(one->fid, wanted, missing);

		if (form == CFD_DELIVERY_DELIVERY &&
			(cfd_delivery_find(period, one->fid, one->t, &given->envelope, &given->length) ||
			 cfd_adopted_find(one->fid, one->t, &given->envelope, &given->length)))
			continue;
		wanted[missing] = (CfdWireWanted) {.fid = one->fid,.t = one->t,.form = form};
		numbers[missing++] = i;
	}
	MemoryContextSwitchTo(before);
	/* A request for a single value also reports errors of earlier one-way messages. */
	if (missing > 1 || (missing == 1 && wanted[0].form != CFD_DELIVERY_SESSION && !cfd_channel.outstanding))
		ask_for_rest(list, period, wanted, numbers, missing);
	return true;
}

static bool
take_given(CfdEnvelopes *list, const char **envelope, uint32 *length)
{
	const CfdGiven *given = &list->given[list->next - list->given_from];
	CfdFid		fid = list->asked[list->next].fid;

	list->next++;
	if (given->envelope == NULL)
		return false;
	if (given->keyed)
		cfd_delivery_written(list->period, fid);
	*envelope = given->envelope;
	*length = given->length;
	return true;
}

bool
cfd_envelopes_next(CfdEnvelopes *list, CfdFid fid, uint8 type, const char **envelope, uint32 *length)
{
	const CfdWireWanted *entry = list->asked + list->next;
	CfdReadSealed sealed;

	if (list->next == list->values || entry->fid != fid || entry->t != type)
		return false;
	if (list->given != NULL || (list->left.at == list->left.end && cfd_envelopes_give(list)))
		return take_given(list, envelope, length);
	if (list->left.at == list->left.end && !cfd_envelopes_fetch(list))
	{
		list->next++;
		return false;
	}
	sealed = next_sealed(list);
	*envelope = (const char *) sealed.envelope;
	*length = sealed.envelope_length;
	list->next++;
	return true;
}
