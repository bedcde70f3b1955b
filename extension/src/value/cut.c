/*
 * cut.c
 *	  Restores the envelopes that PostgreSQL has cut in an error's detail; see
 *	  cut.h.
 *
 * Invariant: as in cut.h.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"
#include "value/cut.h"
#include "value/shown.h"
#include "wire/wire.h"

#define ELLIPSIS "..."
/* Most bytes to be remembered, of all values. What is longer remains cut. */
#define REMEMBERED_MAX (256 * 1024)

static MemoryContext remembered_context = NULL;
static List *remembered = NIL;
static size_t remembered_bytes = 0;

static void
cfd_cut_forget(void)
{
	if (remembered_context != NULL)
		MemoryContextReset(remembered_context);
	remembered = NIL;
	remembered_bytes = 0;
}

void
cfd_cut_remember(const FmgrInfo *flinfo, const char *text)
{
	size_t		length = strlen(text);
	MemoryContext before;

	if (length <= CFD_DETAIL_VALUE_BYTES || length > REMEMBERED_MAX || !cfd_is_in_message(flinfo))
		return;
	if (remembered_bytes + length > REMEMBERED_MAX)
		cfd_cut_forget();
	if (remembered_context == NULL)
		remembered_context = AllocSetContextCreate(TopMemoryContext, "confide values in messages", ALLOCSET_SMALL_SIZES);
	before = MemoryContextSwitchTo(remembered_context);
	remembered = lappend(remembered, pstrdup(text));
	remembered_bytes += length;
	MemoryContextSwitchTo(before);
}

/* The remembered text of which the first bytes stand here, followed by an ellipsis; otherwise NULL. */
static const char *
cfd_cut_whole(const char *cut)
{
	ListCell   *cell;

	if (strncmp(cut, CFD_ENVELOPE_PREFIX, strlen(CFD_ENVELOPE_PREFIX)) != 0 &&
		strncmp(cut, CFD_SOFT_PREFIX, strlen(CFD_SOFT_PREFIX)) != 0)
		return NULL;
	foreach(cell, remembered)
	{
		if (strncmp(cut, lfirst(cell), CFD_DETAIL_VALUE_BYTES) == 0 &&
			strncmp(cut + CFD_DETAIL_VALUE_BYTES, ELLIPSIS, strlen(ELLIPSIS)) == 0)
			return lfirst(cell);
	}
	return NULL;
}

char *
cfd_cut_restore(char *detail)
{
	StringInfoData whole;
	bool		found = false;

	if (remembered == NIL)
		return detail;
	initStringInfo(&whole);
	for (const char *at = detail; *at != '\0';)
	{
		const char *text = cfd_cut_whole(at);

		if (text == NULL)
		{
			appendStringInfoChar(&whole, *at++);
			continue;
		}
		appendStringInfo(&whole, "%s%c", text, CFD_ENVELOPE_CUT);
		at += CFD_DETAIL_VALUE_BYTES + strlen(ELLIPSIS);
		found = true;
	}
	cfd_cut_forget();
	return found ? whole.data : detail;
}
