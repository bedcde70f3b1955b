/*
 * error.h
 *	  Raises errors that the keeper reports as PostgreSQL errors.
 *
 * Invariant: whatever bytes the keeper sends, the result is an ordinary ERROR.
 */
#ifndef CFD_SESSION_ERROR_H
#define CFD_SESSION_ERROR_H

#include "postgres.h"
#include "wire/wire.h"

extern void cfd_raise_error(const char *body, uint32 length) pg_attribute_noreturn();
/* As above, for an error that was part of an answer. */
extern void cfd_raise(const CfdReadError *error) pg_attribute_noreturn();

#endif
