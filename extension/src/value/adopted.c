/*
 * adopted.c
 *	  What the transaction has adopted; see adopted.h.
 *
 * Few values are noted: who writes many waits once for all anyway.
 *
 * Invariants: as in adopted.h.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/memutils.h"
#include "value/adopted.h"
#include "value/delivery.h"
#include "value/kept.h"

typedef struct Adopted
{
	CfdFid		fid;
	uint8		type;
	uint32		at;				/* of the envelope */
	uint32		length;
} Adopted;

static Adopted entries[CFD_DELIVERY_VALUES_MAX];
static int	count = 0;
static StringInfoData envelopes = {0};
/* Channel and handshake that the entries belong to. */
static uint32 entries_generation = 0;
static uint32 entries_clients = 0;

static bool
entries_are_current(void)
{
	return cfd_channel.connected && entries_generation == cfd_channel.generation &&
		entries_clients == cfd_channel.clients;
}

void
cfd_adopted_note(uint64 period, CfdFid fid, const CfdSealed *sealed)
{
	if (period == 0 || !cfd_delivery_expected(cfd_fid_partition(fid)) ||
		sealed->length > CFD_SEALED_CIPHERTEXT + CFD_DELIVERY_KEPT_BYTES)
		return;
	if (!entries_are_current())
		cfd_adopted_forget();
	if (count == lengthof(entries))
		return;
	if (envelopes.data == NULL)
	{
		MemoryContext before = MemoryContextSwitchTo(TopMemoryContext);

		initStringInfo(&envelopes);
		MemoryContextSwitchTo(before);
	}
	entries_generation = cfd_channel.generation;
	entries_clients = cfd_channel.clients;
	entries[count++] = (Adopted) {fid, cfd_sealed_type(sealed), envelopes.len, sealed->length};
	appendBinaryStringInfo(&envelopes, (const char *) sealed->envelope, sealed->length);
}

bool
cfd_adopted_find(CfdFid fid, uint8 type, const char **envelope, uint32 *length)
{
	for (int i = 0; i < count && entries_are_current(); i++)
	{
		char	   *copy;

		if (entries[i].fid != fid || entries[i].type != type)
			continue;
		*length = entries[i].length;
		copy = palloc(*length);
		memcpy(copy, envelopes.data + entries[i].at, *length);
		*envelope = copy;
		return true;
	}
	return false;
}

int
cfd_adopted_wanted(uint64 *period, CfdWireWanted *wanted)
{
	*period = cfd_delivery_period();
	if (*period == 0 || !entries_are_current())
		return 0;
	for (int i = 0; i < count; i++)
		wanted[i] = (CfdWireWanted) {.fid = entries[i].fid,.t = entries[i].type,.form = CFD_DELIVERY_DELIVERY};
	return count;
}

void
cfd_adopted_delivered(uint64 period, const CfdWireWanted *wanted, int many, CfdReader envelopes)
{
	CfdReadSealed sealed;

	for (int i = 0; i < many && envelopes.at != envelopes.end; i++)
	{
		if (!cfd_read_sealed(&envelopes, &sealed))
			cfd_violation("malformed envelope of an adopted value");
		cfd_kept_put(period, wanted[i].fid, wanted[i].t, (const char *) sealed.envelope, sealed.envelope_length);
	}
}

void
cfd_adopted_confirm(void)
{
	CfdWireWanted wanted[CFD_DELIVERY_VALUES_MAX];
	uint64		period;
	int			many = cfd_adopted_wanted(&period, wanted);
	CfdWireConfirm body = {.period = period};
	CfdReadConfirmAnswer read;
	const char *answer;
	uint32		length;

	if (many == 0)
	{
		cfd_fence();
		return;
	}
	answer = cfd_call(CFD_KIND_CONFIRM, &body, sizeof(body), wanted, many * sizeof(*wanted), &length);
	CFD_DECODE(confirm_answer, answer, length, &read);
	cfd_adopted_delivered(period, wanted, many, read.envelopes);
}

void
cfd_adopted_forget(void)
{
	count = 0;
	if (envelopes.data != NULL)
		resetStringInfo(&envelopes);
}
