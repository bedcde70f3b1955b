/*
 * known.c
 *	  The cache of facts; see known.h.
 *
 * Each scope has its own hash table with open addressing. Emptying a scope
 * gives it a new stamp, and entries with an old stamp count as free. Few
 * scopes hold facts at a time, so a lookup goes through all of them.
 *
 * Invariants: as in known.h; a table is at most half full.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "known/known.h"
#include "session/pins.h"
#include "utils/memutils.h"

/*
 * Size of a new table, maximum size, and the size up to which an emptied table
 * is kept for reuse, in entries.
 */
#define ENTRIES_FIRST 256
#define ENTRIES_MAX (1024 * 1024)
#define ENTRIES_KEPT 8192
/* Longer operands are not cached. */
#define COPIED_MAX (64 * 1024)
/* Operands given as bytes are hashed by this many bytes at either end. */
#define HASHED_BYTES 64

struct CfdFact
{
	uint64		stamp;			/* equal to the scope's stamp if the entry is valid */
	uint64		a;
	uint64		b;
	uint64		answer;
	const void *bytes;			/* an operand given as bytes, or NULL */
	uint32		length;
	uint32		function;		/* kind in the high byte, then a number within the kind */
};

CfdScope	cfd_known[CFD_SCOPES];
uint32		cfd_known_kinds[CFD_FACT_KINDS];

static CfdScope *scopes = NULL;
static uint64 last_stamp = 0;

/* ---------- scopes ---------- */

/* Adds a scope to the list. Global scopes are kept in the order of CfdScopeName. */
static void
list_scope(CfdScope *scope)
{
	CfdScope  **at = &scopes;

	if (scope->listed)
		return;
	while (*at != NULL && *at < scope)
		at = &(*at)->next;
	scope->next = *at;
	*at = scope;
	scope->listed = true;
}

static void
unlist_scope(CfdScope *scope)
{
	CfdScope  **at = &scopes;

	if (!scope->listed)
		return;
	while (*at != scope)
		at = &(*at)->next;
	*at = scope->next;
	scope->listed = false;
}

void
cfd_known_end(CfdScope *scope)
{
	if (!scope->listed)
		return;
	unlist_scope(scope);
	for (int kind = 0; kind < CFD_FACT_KINDS; kind++)
	{
		cfd_known_kinds[kind] -= scope->kinds[kind];
		scope->kinds[kind] = 0;
	}
	for (CfdSource *source = scope->sources; source != NULL; source = source->next)
		source->scope = NULL;
	scope->sources = NULL;
	scope->count = 0;
	scope->stamp = 0;
	if (scope->facts != NULL && (scope->mask >= ENTRIES_KEPT || scope->context != NULL))
	{
		pfree(scope->facts);
		scope->facts = NULL;
		scope->mask = 0;
	}
	if (scope->copies != NULL)
		MemoryContextReset(scope->copies);
}

void
cfd_known_begin(CfdScope *scope)
{
	cfd_known_end(scope);
	scope->sweeps = cfd_sweeps();
}

void
cfd_known_end_statement(void)
{
	cfd_known_end(&cfd_known[CFD_SCOPE_SEARCH]);
	cfd_known_end(&cfd_known[CFD_SCOPE_SORTED]);
	cfd_known_end(&cfd_known[CFD_SCOPE_INSERTION]);
}

void
cfd_known_end_message(void)
{
	cfd_known_end(&cfd_known[CFD_SCOPE_MESSAGE]);
}

/* ---------- the table ---------- */

static inline uint32
cfd_known_hash(const CfdFact *fact)
{
	uint64		hash = (fact->a * UINT64CONST(0x9E3779B97F4A7C15)) ^ (fact->b * UINT64CONST(0xC2B2AE3D27D4EB4F));

	if (fact->bytes != NULL)
	{
		uint32		ends = Min(fact->length, HASHED_BYTES);

		hash ^= hash_bytes_extended(fact->bytes, ends, fact->length);
		hash ^= hash_bytes_extended((const unsigned char *) fact->bytes + fact->length - ends, ends, 1);
	}
	return (uint32) (hash >> 32) ^ (uint32) hash ^ fact->function;
}

static inline bool
is_same(const CfdFact *x, const CfdFact *y)
{
	return x->a == y->a && x->b == y->b && x->function == y->function && x->length == y->length &&
		(x->length == 0 || memcmp(x->bytes, y->bytes, x->length) == 0);
}

/* Finds the entry of a fact, or the free entry where it belongs. */
static inline CfdFact *
cfd_known_entry(const CfdScope *scope, const CfdFact *fact)
{
	for (uint32 place = cfd_known_hash(fact);; place++)
	{
		CfdFact    *entry = &scope->facts[place & scope->mask];

		if (entry->stamp != scope->stamp || is_same(entry, fact))
			return entry;
	}
}

/* Makes room for one more fact. Returns false if the table is at its limit. */
static bool
cfd_known_make_room(CfdScope *scope)
{
	CfdFact    *old = scope->facts;
	uint32		entries = old == NULL ? 0 : scope->mask + 1;
	MemoryContext context = scope->context == NULL ? TopMemoryContext : scope->context;

	if (scope->count < entries / 2)
		return true;
	if (entries >= ENTRIES_MAX)
		return false;
	scope->facts = MemoryContextAllocExtended(context, sizeof(CfdFact) * Max(2 * entries, ENTRIES_FIRST),
											  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO | MCXT_ALLOC_NO_OOM);
	if (scope->facts == NULL)
	{
		scope->facts = old;
		return false;
	}
	scope->mask = Max(2 * entries, ENTRIES_FIRST) - 1;
	for (uint32 i = 0; i < entries; i++)
	{
		if (old[i].stamp == scope->stamp)
			*cfd_known_entry(scope, &old[i]) = old[i];
	}
	if (old != NULL)
		pfree(old);
	return true;
}

/*
 * Finds or creates the entry of a fact in a scope. A new entry gets
 * fact->answer. Returns NULL if there is no room.
 */
static CfdFact *
cfd_known_put(CfdScope *scope, CfdFactKind kind, const CfdFact *fact)
{
	CfdFact    *entry;

	if (scope->stamp == 0)
		scope->stamp = ++last_stamp;
	if (!cfd_known_make_room(scope))
		return NULL;
	list_scope(scope);
	entry = cfd_known_entry(scope, fact);
	if (entry->stamp != scope->stamp)
	{
		*entry = *fact;
		entry->stamp = scope->stamp;
		scope->count++;
		scope->kinds[kind]++;
		cfd_known_kinds[kind]++;
	}
	return entry;
}

/* Looks up a fact in one scope. Returns NULL if it is not there. */
static inline const CfdFact *
cfd_known_look_up(const CfdScope *scope, CfdFactKind kind, const CfdFact *fact)
{
	const CfdFact *entry;

	if (scope->kinds[kind] == 0 || scope->count == 0)
		return NULL;
	entry = cfd_known_entry(scope, fact);
	return entry->stamp == scope->stamp ? entry : NULL;
}

/* Combines the kind and a number that is unique within the kind. */
static inline uint32
function_of(CfdFactKind kind, uint32 which)
{
	return ((uint32) kind << 24) | which;
}

/* ---------- orders ---------- */

static inline CfdFact
about_order(uint16 comparison, CfdFid a, CfdFid b)
{
	return (CfdFact) {
		.a = a,
		.b = b,
		.function = function_of(CFD_FACT_ORDER, comparison),
		.answer = CFD_ORDER_ANY
	};
}

void
cfd_known_put_order(CfdScope *scope, uint16 comparison, CfdFid a, CfdFid b, uint8 possible)
{
	CfdFact		fact = about_order(comparison, a, b);
	CfdFact    *entry = cfd_known_put(scope, CFD_FACT_ORDER, &fact);

	/* Each test of the same two values rules out further orders. */
	if (entry != NULL)
		entry->answer &= possible;
}

uint8
cfd_known_find_orders(uint16 comparison, CfdFid a, CfdFid b)
{
	CfdFact		fact = about_order(comparison, a, b);
	uint64		sweeps = cfd_sweeps();
	uint8		possible = CFD_ORDER_ANY;

	for (const CfdScope *scope = scopes; scope != NULL; scope = scope->next)
	{
		const CfdFact *entry = cfd_known_look_up(scope, CFD_FACT_ORDER, &fact);

		if (entry != NULL && scope->sweeps == sweeps)
			possible &= (uint8) entry->answer;
	}
	if (unlikely(possible == CFD_ORDER_ANY && cfd_known[CFD_SCOPE_ESTIMATE].sources != NULL))
	{
		const CfdSource *source = cfd_known[CFD_SCOPE_ESTIMATE].sources;

		possible = source->assumed(source, comparison, a, b);
	}
	return possible;
}

static bool
order_by_source(CfdFid a, CfdFid b, int *order)
{
	for (const CfdScope *scope = scopes; scope != NULL; scope = scope->next)
	{
		for (CfdSource *source = scope->sources; source != NULL; source = source->next)
		{
			if (source->kind == CFD_FACT_ORDER && source->order != NULL && source->order(source, a, b, order))
				return true;
		}
	}
	return false;
}

bool
cfd_known_find_order(uint16 comparison, CfdFid a, CfdFid b, int *order)
{
	switch (cfd_known_find_orders(comparison, a, b))
	{
		case CFD_ORDER_LESS:
			*order = -1;
			return true;
		case CFD_ORDER_EQUAL:
			*order = 0;
			return true;
		case CFD_ORDER_GREATER:
			*order = 1;
			return true;
		default:
			return order_by_source(a, b, order);
	}
}

/* ---------- other facts ---------- */

static CfdFact
about_place(uint16 comparison, CfdFid value, const CfdFid *keys, uint32 count)
{
	return (CfdFact) {
		.a = value,
		.function = function_of(CFD_FACT_PLACE, comparison),
		.bytes = keys,
		.length = count * sizeof(CfdFid)
	};
}

void
cfd_known_put_place(CfdScope *scope, uint16 comparison, CfdFid value, const CfdFid *keys, uint32 count,
					uint32 less, uint32 up_to)
{
	CfdFact		fact = about_place(comparison, value, keys, count);

	fact.answer = ((uint64) less << 32) | up_to;
	(void) cfd_known_put(scope, CFD_FACT_PLACE, &fact);
}

bool
cfd_known_find_place(uint16 comparison, CfdFid value, const CfdFid *keys, uint32 count, uint32 *less, uint32 *up_to)
{
	CfdFact		fact = about_place(comparison, value, keys, count);
	uint64		sweeps = cfd_sweeps();

	for (const CfdScope *scope = scopes; scope != NULL; scope = scope->next)
	{
		const CfdFact *entry = cfd_known_look_up(scope, CFD_FACT_PLACE, &fact);

		if (entry == NULL || scope->sweeps != sweeps)
			continue;
		*less = (uint32) (entry->answer >> 32);
		*up_to = (uint32) entry->answer;
		return true;
	}
	return false;
}

static CfdFact
about_input(uint8 type, int32 typmod, uint8 place, const void *envelope, uint32 length)
{
	return (CfdFact) {
		.a = (uint32) typmod,
		.b = place,
		.function = function_of(CFD_FACT_INPUT, type),
		.bytes = envelope,
		.length = length
	};
}

void
cfd_known_put_input(uint8 type, int32 typmod, uint8 place, const void *envelope, uint32 length, CfdFid value)
{
	CfdScope   *scope = &cfd_known[CFD_SCOPE_MESSAGE];
	CfdFact		fact;
	void	   *copy;

	if (length > COPIED_MAX)
		return;
	if (scope->copies == NULL)
		scope->copies = AllocSetContextCreate(TopMemoryContext, "Confide envelopes", ALLOCSET_DEFAULT_SIZES);
	copy = MemoryContextAlloc(scope->copies, length);
	memcpy(copy, envelope, length);
	fact = about_input(type, typmod, place, copy, length);
	fact.answer = value;
	(void) cfd_known_put(scope, CFD_FACT_INPUT, &fact);
}

CfdFid
cfd_known_find_input(uint8 type, int32 typmod, uint8 place, const void *envelope, uint32 length)
{
	CfdFact		fact = about_input(type, typmod, place, envelope, length);
	const CfdFact *entry = cfd_known_look_up(&cfd_known[CFD_SCOPE_MESSAGE], CFD_FACT_INPUT, &fact);

	return entry == NULL ? 0 : entry->answer;
}

bool
cfd_known_find_envelope(uint8 type, CfdFid value, const char **envelope, uint32 *length)
{
	for (const CfdScope *scope = scopes; scope != NULL; scope = scope->next)
	{
		for (CfdSource *source = scope->sources; source != NULL; source = source->next)
		{
			if (source->kind == CFD_FACT_ENVELOPE && source->envelope(source, type, value, envelope, length))
				return true;
		}
	}
	return false;
}

/* ---------- sources ---------- */

void
cfd_known_add_source(CfdScope *scope, CfdSource *source)
{
	cfd_known_drop_source(source);
	list_scope(scope);
	source->scope = scope;
	source->next = scope->sources;
	scope->sources = source;
	scope->kinds[source->kind]++;
	cfd_known_kinds[source->kind]++;
}

void
cfd_known_drop_source(CfdSource *source)
{
	CfdSource **at;

	if (source->scope == NULL)
		return;
	at = &source->scope->sources;
	while (*at != source)
		at = &(*at)->next;
	*at = source->next;
	source->scope->kinds[source->kind]--;
	cfd_known_kinds[source->kind]--;
	source->scope = NULL;
}
