/*
 * known.h
 *	  What the keeper has said already, of what will be asked for one by one: from a
 *	  function and its operands to the answer.
 *
 * Whoever sees many operations coming (a search, a sort, an index build, an estimate) has the
 * keeper do them together and leaves the answers here; operations (ops/), input and output
 * (value/) look here before they ask. So these know nothing of nodes and indexes.
 *
 * Answers are orders, from which tests (=, <, ...) follow. There are two forms. A *subject* is a
 * value with which others were compared: a table from these others to orders. An *order* knows any
 * two of its values, by ranks; what has it is asked through a function. Besides there are
 * envelopes of values that are about to be written (result/), and values of envelopes
 * that have come (known/literals.h).
 *
 * Invariants: what is told is what the keeper would answer, of operands and functions for which it
 * was asked; a subject counts for nothing once garbage was swept, since its
 * identifiers may name other values then; nothing outlives its scope.
 */
#ifndef CFD_KNOWN_KNOWN_H
#define CFD_KNOWN_KNOWN_H

#include "postgres.h"
#include "fmgr.h"
#include "wire/wire.h"

/* ---------- scopes ---------- */

/* How long something is known: until its scope is forgotten. */
typedef enum CfdScope
{
	CFD_SCOPE_SEARCH,			/* of a B-tree, for one page or descent */
	CFD_SCOPE_SORTED,			/* the row that a sort has just given */
	CFD_SCOPE_ESTIMATE,			/* one call of an estimator */
	CFD_SCOPES
} CfdScope;

/* None of these raises an error. */
extern void cfd_known_forget(CfdScope scope);
/* A statement begins, or the outermost one ends. */
extern void cfd_known_forget_statement(void);
/* A utility statement ends, and with it the index builds in it. */
extern void cfd_known_forget_builds(void);

/* ---------- subjects ---------- */

/* Values that are looked for in one search, and then some. */
#define CFD_SUBJECTS_MAX 8

typedef struct CfdAnswer
{
	CfdFid		fid;
	uint64		stamp:56;		/* of the subject that it is about */
	uint64		order:8;		/* plus 1: how it compares with the subject */
} CfdAnswer;

/* Orders for which a test holds. */
#define CFD_HOLDS_LESS 1
#define CFD_HOLDS_EQUAL 2
#define CFD_HOLDS_GREATER 4

/* Which operand the subject is. */
typedef enum CfdSide
{
	CFD_SECOND,
	CFD_FIRST,
	CFD_EITHER					/* the test is symmetric */
} CfdSide;

typedef struct CfdSubject
{
	CfdFid		value;
	Oid			test;			/* function that can be told, or 0 */
	uint8		holds;			/* orders for which it holds */
	CfdSide		side;
	uint64		stamp;
	uint64		sweeps;			/* of garbage, before anything was asked */
	uint32		count;
	uint32		mask;			/* entries - 1 */
	CfdAnswer  *answers;		/* an open hash table */
} CfdSubject;

/*
 * A new subject, about which nothing is known. The entries are the caller's, a power of two, zero when
 * first used; half of them stay free, and answers beyond that are not kept.
 */
extern CfdSubject *cfd_known_subject(CfdScope scope, CfdFid value, CfdAnswer *answers, uint32 entries);

static inline CfdAnswer *
cfd_known_entry(const CfdSubject *subject, CfdFid fid)
{
	uint32		place = (uint32) ((fid * UINT64CONST(0x9E3779B97F4A7C15)) >> 40);

	for (;; place++)
	{
		CfdAnswer  *entry = &subject->answers[place & subject->mask];

		if (entry->stamp != subject->stamp || entry->fid == fid)
			return entry;
	}
}

/* A value compares so with the subject. */
static inline void
cfd_known_put(CfdSubject *subject, CfdFid fid, int order)
{
	CfdAnswer  *entry;

	if (subject->count > subject->mask / 2)
		return;
	entry = cfd_known_entry(subject, fid);
	subject->count += entry->stamp != subject->stamp;
	entry->fid = fid;
	entry->stamp = subject->stamp;
	entry->order = order + 1;
}

/* ---------- orders ---------- */

typedef enum CfdOrderScope
{
	CFD_ORDER_BUILD,			/* rows of an index build */
	CFD_ORDER_RANKED,			/* elements of an array, a sample */
	CFD_ORDERS
} CfdOrderScope;

/* The head of whatever knows the order of any two of its values. */
typedef struct CfdOrder
{
	/* Whether it is known, or can be found out; then gives it. */
	bool		(*compare) (struct CfdOrder *order, CfdFid a, CfdFid b, int *result);
	bool		(*has) (const struct CfdOrder *order, CfdFid fid);
} CfdOrder;

/* NULL: none. Whoever sets one sets it back, or its memory context does (cfd_known_drop_order). */
extern CfdOrder *cfd_known_orders[CFD_ORDERS];
extern void cfd_known_drop_order(const CfdOrder *order);

/* ---------- envelopes ---------- */

/* What has envelopes of values that are about to be written; set once (result/results.c). */
typedef bool (*CfdEnvelopeSource) (CfdFid fid, uint8 type, const char **envelope, uint32 *length);
extern CfdEnvelopeSource cfd_known_envelope;

/* ---------- what operations ask ---------- */

/* Subjects of all scopes. */
extern int	cfd_known_subjects;
extern bool cfd_known_find_test(Oid function, CfdFid a, CfdFid b, bool *holds);
extern bool cfd_known_find_compared(CfdFid a, CfdFid b, int *order);
extern bool cfd_known_find_ordered(CfdFid a, CfdFid b, int *order);

/* What a test of two values gives, if that is known. */
static inline bool
cfd_known_test(const FmgrInfo *function, CfdFid a, CfdFid b, bool *holds)
{
	return unlikely(cfd_known_subjects > 0) && function != NULL &&
		cfd_known_find_test(function->fn_oid, a, b, holds);
}

/* What a type's comparison function gives for two values, if a subject tells. */
static inline bool
cfd_known_compared(CfdFid a, CfdFid b, int *order)
{
	return unlikely(cfd_known_subjects > 0) && cfd_known_find_compared(a, b, order);
}

/* The order of two values, if they are of one that is known. */
static inline bool
cfd_known_ordered(CfdFid a, CfdFid b, int *order)
{
	return unlikely(cfd_known_orders[CFD_ORDER_BUILD] != NULL || cfd_known_orders[CFD_ORDER_RANKED] != NULL) &&
		cfd_known_find_ordered(a, b, order);
}

/* Whether the order of an index build's rows has a value. */
static inline bool
cfd_known_in_build(CfdFid fid)
{
	const CfdOrder *build = cfd_known_orders[CFD_ORDER_BUILD];

	return build != NULL && build->has(build, fid);
}

#endif
