/*
 * place.h
 *	  Where a new temporary value goes: statement arena, plan arena, or at once
 *	  into the partition of constants (docs/decisions.md, lifetime). In io.c.
 *
 * Does not store values.
 *
 * Invariant: what a cached plan or a catalog may keep is never in the statement
 * arena.
 */
#ifndef CFD_VALUE_PLACE_H
#define CFD_VALUE_PLACE_H

#include "postgres.h"
#include "session/channel.h"
#include "fmgr.h"

typedef enum CfdPlace
{
	CFD_PLACE_STATEMENT,
	CFD_PLACE_PLAN,
	CFD_PLACE_PERMANENT
} CfdPlace;

/* What runs now, as far as it matters here; kept by hooks/statement.c. */
typedef enum CfdMode
{
	CFD_MODE_QUERY,				/* parsing, planning or executing queries */
	CFD_MODE_CATALOG,			/* a statement that stores expressions */
	CFD_MODE_PREPARE,			/* PREPARE */
	CFD_MODE_COPY				/* COPY FROM */
} CfdMode;

extern CfdMode cfd_mode;
/* How many statements run, one within the other; 0: what a statement has put aside is written. */
extern int	cfd_statement_depth;

/* Whether a function is called for the first time through this FmgrInfo. */
static inline bool
cfd_first_call(const FmgrInfo *flinfo)
{
	return flinfo == NULL || flinfo->fn_extra == NULL;
}

extern void cfd_mark_called(FmgrInfo *flinfo);
/* Whether fn_extra says only that there was a call. */
extern bool cfd_is_mark(const void *extra);
extern CfdPlace cfd_place_input(FmgrInfo *flinfo, uint8 origin, uint8 flags);
/* For the first call of an operation; later calls go to the statement arena. */
extern CfdPlace cfd_place_result(FmgrInfo *flinfo, const CfdFid *operands, int count);
/* The arena in which a value for a place is made. */
static inline CfdArena
cfd_place_arena(CfdPlace place)
{
	return place == CFD_PLACE_PLAN ? CFD_PLAN : CFD_STATEMENT;
}

#endif
