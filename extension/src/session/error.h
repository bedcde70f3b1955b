/*
 * error.h
 *	  Raises errors that the keeper reports as PostgreSQL errors.
 *
 * Invariant: whatever bytes the keeper sends, the result is an ordinary ERROR.
 */
#ifndef CFD_SESSION_ERROR_H
#define CFD_SESSION_ERROR_H

#include "postgres.h"
#include "compat/compat.h"
#include "wire/wire.h"

pg_noreturn extern void cfd_raise_error(const char *body, uint32 length);
/* As above, for an error that was part of an answer. */
pg_noreturn extern void cfd_raise(const CfdReadError *error);

#endif
