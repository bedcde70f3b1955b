/*
 * place.h
 *	  Where a new temporary value is stored: in the statement arena, in the
 *	  plan arena, or directly in the partition of constants ("lifetime" in
 *	  docs/decisions.md). Implemented in io.c.
 *
 * Does not store values.
 *
 * Invariant: a value that a cached plan or a catalog may keep is never in the
 * statement arena.
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

/* Kind of statement that is running, maintained by hooks/statement.c. */
typedef enum CfdMode
{
	CFD_MODE_QUERY,				/* parsing, planning or executing queries */
	CFD_MODE_CATALOG,			/* a statement that stores expressions */
	CFD_MODE_PREPARE,			/* PREPARE */
	CFD_MODE_COPY				/* COPY FROM */
} CfdMode;

extern CfdMode cfd_mode;
/* Nesting depth of running statements. 0: only a stored result is being sent. */
extern int	cfd_statement_depth;

/* Whether this is the first call through an FmgrInfo. */
static inline bool
cfd_first_call(const FmgrInfo *flinfo)
{
	return flinfo == NULL || flinfo->fn_extra == NULL;
}

extern void cfd_mark_called(FmgrInfo *flinfo);
/* Whether fn_extra is only the mark of an earlier call. */
extern bool cfd_is_mark(const void *extra);
extern CfdPlace cfd_place_input(FmgrInfo *flinfo, uint8 origin, uint8 flags);
/*
 * For the first call of an operator. Results of later calls go to the
 * statement arena.
 */
extern CfdPlace cfd_place_result(FmgrInfo *flinfo, const CfdFid *operands, int count);
/* The arena in which a value for this place is created. */
static inline CfdArena
cfd_place_arena(CfdPlace place)
{
	return place == CFD_PLACE_PLAN ? CFD_PLAN : CFD_STATEMENT;
}

#endif
