/*
 * known.h
 *	  Known facts, one table: from a function and its operands to the answer, so that what the
 *	  keeper has said already is not asked again.
 *
 * Whoever sees many operations coming (a search, a sort, an index build, an estimate, a result) has
 * the keeper do them together and leaves the answers here; operations (ops/), input and output
 * (value/) look here before they ask. So these know nothing of nodes and indexes.
 *
 * A fact is one of four kinds, by what its function does: it compares two values, places one among
 * the keys of a page, takes an envelope in, or gives one out. What is too much to be told one by one
 * (ranks of a million values, envelopes in the order in which they will be written) is not put
 * here but found by a *source*, which the table asks.
 *
 * Each fact and source is in a scope, and ends with it: cfd_known_end is the one end of life.
 * Some scopes there are once; who has several things of one life at a time has scopes of its own.
 *
 * Invariants: what is told is what the keeper would answer, of operands and functions for which it
 * was asked, but for what an estimator is told to assume; facts about identifiers count for nothing
 * once garbage was swept, since these may name other values then; nothing outlives its scope.
 */
#ifndef CFD_KNOWN_KNOWN_H
#define CFD_KNOWN_KNOWN_H

#include "postgres.h"
#include "wire/wire.h"

typedef enum CfdFactKind
{
	CFD_FACT_ORDER,				/* (comparison, a, b): which orders are possible */
	CFD_FACT_PLACE,				/* (comparison, value, keys): how many come before it, and through it */
	CFD_FACT_INPUT,				/* (type, modifier and place, envelope): the value */
	CFD_FACT_ENVELOPE,			/* (type, value): its envelope; of sources only */
	CFD_FACT_KINDS
} CfdFactKind;

/* ---------- scopes ---------- */

typedef struct CfdFact CfdFact;
typedef struct CfdSource CfdSource;

/* All of it zero but for `context`: a scope in which nothing is known. */
typedef struct CfdScope
{
	MemoryContext context;		/* of the table; NULL: TopMemoryContext */
	struct CfdScope *next;		/* of those that know anything */
	bool		listed;
	uint64		stamp;			/* of facts that are valid */
	uint64		sweeps;			/* of garbage, before anything was asked */
	uint32		count;
	uint32		mask;			/* entries - 1 */
	CfdFact    *facts;			/* an open hash table */
	CfdSource  *sources;
	MemoryContext copies;		/* of operands */
	uint32		kinds[CFD_FACT_KINDS];	/* facts and sources of each kind */
} CfdScope;

/* What there is once. */
typedef enum CfdScopeName
{
	CFD_SCOPE_ESTIMATE,			/* one call of an estimator */
	CFD_SCOPE_SORTED,			/* the row that a sort has just given */
	CFD_SCOPE_SEARCH,			/* of a B-tree, for one page or descent */
	CFD_SCOPE_INSERTION,		/* into the indexes of the row that is written */
	CFD_SCOPE_PLANNING,			/* the outermost planning */
	CFD_SCOPE_BUILD,			/* index builds of a utility statement */
	CFD_SCOPE_MESSAGE,			/* one message of the client */
	CFD_SCOPE_BACKEND,			/* sources that are always there */
	CFD_SCOPES
} CfdScopeName;

extern CfdScope cfd_known[CFD_SCOPES];

/* Ends what was known in a scope, and notes that something is about to be asked. */
extern void cfd_known_begin(CfdScope *scope);
/* Never raises an error. */
extern void cfd_known_end(CfdScope *scope);
/* A statement begins, or the outermost one ends: what its scans have left. */
extern void cfd_known_end_statement(void);
/* The client's message is done, or the channel closes. */
extern void cfd_known_end_message(void);

/* ---------- orders ---------- */

/* Orders in which two values may be; tests hold for some of them. As the generated list has them. */
#define CFD_ORDER_LESS 1
#define CFD_ORDER_EQUAL 2
#define CFD_ORDER_GREATER 4
#define CFD_ORDER_ANY 7

/* Orders are found out only by comparisons of this kind; `comparison` is a signature. */
extern void cfd_known_put_order(CfdScope *scope, uint16 comparison, CfdFid a, CfdFid b, uint8 possible);
extern uint8 cfd_known_find_orders(uint16 comparison, CfdFid a, CfdFid b);
extern bool cfd_known_find_order(uint16 comparison, CfdFid a, CfdFid b, int *order);

/* ---------- other facts ---------- */

/* The keys stay where they are as long as the scope. */
extern void cfd_known_put_place(CfdScope *scope, uint16 comparison, CfdFid value,
								const CfdFid *keys, uint32 count, uint32 less, uint32 up_to);
extern bool cfd_known_find_place(uint16 comparison, CfdFid value, const CfdFid *keys, uint32 count,
								 uint32 *less, uint32 *up_to);

/*
 * The same envelope in one message of the client is the same value, so that PostgreSQL sees equal
 * constants as equal (GROUP BY f(x, '...')). Envelopes are copied: ciphertext, never values.
 */
extern void cfd_known_put_input(uint8 type, int32 typmod, uint8 place, const void *envelope, uint32 length, CfdFid value);
/* 0: not known. */
extern CfdFid cfd_known_find_input(uint8 type, int32 typmod, uint8 place, const void *envelope, uint32 length);

extern bool cfd_known_find_envelope(uint8 type, CfdFid value, const char **envelope, uint32 *length);

/* ---------- sources ---------- */

/* The head of whatever can find facts of one kind out. */
struct CfdSource
{
	CfdSource  *next;			/* of its scope; the newest is asked first */
	CfdScope   *scope;			/* NULL: in none */
	CfdFactKind kind;
	/* Of orders: whether it is known, or can be found out; and whether it has a value. */
	bool		(*order) (CfdSource *source, CfdFid a, CfdFid b, int *order);
	bool		(*has) (const CfdSource *source, CfdFid value);
	/* Of envelopes. */
	bool		(*envelope) (CfdSource *source, uint8 type, CfdFid value, const char **envelope, uint32 *length);
};

extern void cfd_known_add_source(CfdScope *scope, CfdSource *source);
/* Takes it out of its scope, if it is in one. */
extern void cfd_known_drop_source(CfdSource *source);

/* ---------- what operations ask ---------- */

/* Facts and sources of all scopes. */
extern uint32 cfd_known_kinds[CFD_FACT_KINDS];

/* What a test gives that holds for some orders, if that is known. */
static inline bool
cfd_known_test(uint16 comparison, uint8 holds, CfdFid a, CfdFid b, bool *result)
{
	uint8		possible;

	if (likely(cfd_known_kinds[CFD_FACT_ORDER] == 0))
		return false;
	possible = cfd_known_find_orders(comparison, a, b);
	*result = (possible & holds) != 0;
	return (possible & holds) == 0 || (possible & ~holds) == 0;
}

/* The order of two values, if it is known. */
static inline bool
cfd_known_order(uint16 comparison, CfdFid a, CfdFid b, int *order)
{
	return unlikely(cfd_known_kinds[CFD_FACT_ORDER] > 0) && cfd_known_find_order(comparison, a, b, order);
}

/* Whether the order of an index build's rows has a value. */
static inline bool
cfd_known_in_build(CfdFid value)
{
	const CfdSource *build = cfd_known[CFD_SCOPE_BUILD].sources;

	return build != NULL && build->has(build, value);
}

static inline bool
cfd_known_place(uint16 comparison, CfdFid value, const CfdFid *keys, uint32 count, uint32 *less, uint32 *up_to)
{
	return unlikely(cfd_known_kinds[CFD_FACT_PLACE] > 0) &&
		cfd_known_find_place(comparison, value, keys, count, less, up_to);
}

#endif
