/*
 * known.h
 *	  A cache of facts: it maps a function and its operands to the answer,
 *	  so that the keeper is not asked for what it has already said.
 *
 * A caller that knows that many operations follow (a search, a sort, an index
 * build, an estimate, a result) has the keeper perform them in one round trip
 * and stores the answers here. Operators (ops/) and input and output functions
 * (value/) look here before they ask the keeper. They need not know about plan
 * nodes or indexes.
 *
 * There are four kinds of facts: the order of two values, the position of a
 * value among the keys of a page, the value of an incoming envelope, and the
 * envelope of an outgoing value. Facts that are too many to be stored one by
 * one (ranks of a million values, envelopes in the order in which they will be
 * written) are not copied into the table. They come from a *source*, a
 * callback that the table asks.
 *
 * Every fact and source belongs to a scope and ends with it, through
 * cfd_known_end. Most scopes are global; a caller that needs several scopes of
 * the same lifetime allocates its own.
 *
 * Invariants: a stored answer is the one the keeper would give for these
 * operands, except for what an estimator is told to assume; facts about FIDs
 * are ignored after a sweep of garbage, because a FID may name another value
 * by then; nothing outlives its scope.
 */
#ifndef CFD_KNOWN_KNOWN_H
#define CFD_KNOWN_KNOWN_H

#include "postgres.h"
#include "wire/wire.h"

typedef enum CfdFactKind
{
	CFD_FACT_ORDER,				/* (comparison, a, b): the orders that are possible */
	CFD_FACT_PLACE,				/* (comparison, value, keys): keys below it, and keys up to it */
	CFD_FACT_INPUT,				/* (type, typmod, place, envelope): the value's FID */
	CFD_FACT_ENVELOPE,			/* (type, value): its envelope; only from sources */
	CFD_FACT_KINDS
} CfdFactKind;

/* ---------- scopes ---------- */

typedef struct CfdFact CfdFact;
typedef struct CfdSource CfdSource;

/* A scope that is zeroed, except possibly for `context`, is valid and empty. */
typedef struct CfdScope
{
	MemoryContext context;		/* memory context of the table; NULL: TopMemoryContext */
	struct CfdScope *next;		/* next in the list of scopes that hold facts */
	bool		listed;
	uint64		stamp;			/* stamp of the valid entries */
	uint64		sweeps;			/* number of sweeps when the scope began */
	uint32		count;
	uint32		mask;			/* number of entries - 1 */
	CfdFact    *facts;			/* hash table with open addressing */
	CfdSource  *sources;
	MemoryContext copies;		/* memory context of copied operands */
	uint32		kinds[CFD_FACT_KINDS];	/* number of facts and sources by kind */
} CfdScope;

/* Global scopes. */
typedef enum CfdScopeName
{
	CFD_SCOPE_ESTIMATE,			/* one call of an estimator */
	CFD_SCOPE_SORTED,			/* the row a sort has just returned */
	CFD_SCOPE_SEARCH,			/* a B-tree search, for one page or descent */
	CFD_SCOPE_INSERTION,		/* insertion into the indexes of one row */
	CFD_SCOPE_PLANNING,			/* the outermost call of the planner */
	CFD_SCOPE_BUILD,			/* index builds of one utility statement */
	CFD_SCOPE_MESSAGE,			/* one client message */
	CFD_SCOPE_BACKEND,			/* sources that live as long as the backend */
	CFD_SCOPES
} CfdScopeName;

extern CfdScope cfd_known[CFD_SCOPES];

/* Empties a scope and prepares it for new facts. */
extern void cfd_known_begin(CfdScope *scope);
/* Empties a scope. Never raises an error. */
extern void cfd_known_end(CfdScope *scope);
/*
 * Ends the scopes of a statement. Called when a statement begins, and when the
 * outermost one ends.
 */
extern void cfd_known_end_statement(void);
/* Ends the scopes of a client message. Also called when the channel closes. */
extern void cfd_known_end_message(void);

/* ---------- orders ---------- */

/*
 * Bit mask of the orders that two values may have. A test (<, <=, ...) holds
 * for some of them. The bits agree with the generated list of operators.
 */
#define CFD_ORDER_LESS 1
#define CFD_ORDER_EQUAL 2
#define CFD_ORDER_GREATER 4
#define CFD_ORDER_ANY 7
/* A test that does not compare (LIKE) has facts under its own signature: "equal" where it holds. */
#define CFD_ORDER_HOLDS CFD_ORDER_EQUAL

/*
 * Facts about orders. `comparison` is the signature of the comparison
 * function. Only comparisons of the same signature see the fact.
 */
extern void cfd_known_put_order(CfdScope *scope, uint16 comparison, CfdFid a, CfdFid b, uint8 possible);
extern uint8 cfd_known_find_orders(uint16 comparison, CfdFid a, CfdFid b);
extern bool cfd_known_find_order(uint16 comparison, CfdFid a, CfdFid b, int *order);

/* ---------- other facts ---------- */

/* The keys are not copied. They must stay unchanged as long as the scope. */
extern void cfd_known_put_place(CfdScope *scope, uint16 comparison, CfdFid value,
								const CfdFid *keys, uint32 count, uint32 less, uint32 up_to);
extern bool cfd_known_find_place(uint16 comparison, CfdFid value, const CfdFid *keys, uint32 count,
								 uint32 *less, uint32 *up_to);

/*
 * Within one client message, equal envelopes yield the same FID, so that
 * PostgreSQL recognises equal constants (GROUP BY f(x, '...')). Envelopes are
 * copied; they are ciphertext.
 */
extern void cfd_known_put_input(uint8 type, int32 typmod, uint8 place, const void *envelope, uint32 length, CfdFid value);
/* Returns 0 if there is no such fact. */
extern CfdFid cfd_known_find_input(uint8 type, int32 typmod, uint8 place, const void *envelope, uint32 length);

extern bool cfd_known_find_envelope(uint8 type, CfdFid value, const char **envelope, uint32 *length);

/* ---------- sources ---------- */

/* Base of a source, which can find out facts of one kind. */
struct CfdSource
{
	CfdSource  *next;			/* next in its scope; the newest is asked first */
	CfdScope   *scope;			/* NULL: not in a scope */
	CfdFactKind kind;
	/*
	 * Orders: whether the source can tell the order of a and b, and whether it
	 * covers a value.
	 */
	bool		(*order) (CfdSource *source, CfdFid a, CfdFid b, int *order);
	bool		(*has) (const CfdSource *source, CfdFid value);
	/* Of an estimate: which orders of two values are to be taken as possible where nothing is known. */
	uint8		(*assumed) (const CfdSource *source, uint16 comparison, CfdFid a, CfdFid b);
	/* Envelopes: whether the source has one for the value. */
	bool		(*envelope) (CfdSource *source, uint8 type, CfdFid value, const char **envelope, uint32 *length);
};

extern void cfd_known_add_source(CfdScope *scope, CfdSource *source);
/* Removes a source from its scope. Does nothing if it is in none. */
extern void cfd_known_drop_source(CfdSource *source);

/* ---------- lookups by operators ---------- */

/* Number of facts and sources of each kind in all scopes. */
extern uint32 cfd_known_kinds[CFD_FACT_KINDS];

/*
 * Result of a test that holds for the orders in `holds`. Returns false if it
 * is not known.
 */
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

/* Order of two values. Returns false if it is not known. */
static inline bool
cfd_known_order(uint16 comparison, CfdFid a, CfdFid b, int *order)
{
	return unlikely(cfd_known_kinds[CFD_FACT_ORDER] > 0) && cfd_known_find_order(comparison, a, b, order);
}

/* Whether a running index build covers the value. */
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
