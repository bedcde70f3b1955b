/*
 * explain.h
 *	  The header files of EXPLAIN, which differ between major versions of PostgreSQL.
 *
 * Invariant: as in compat.h.
 */
#ifndef CFD_COMPAT_EXPLAIN_H
#define CFD_COMPAT_EXPLAIN_H

#include "postgres.h"
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

#endif
