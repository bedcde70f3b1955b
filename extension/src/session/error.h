/*
 * error.h
 *	  Errors that the keeper tells, raised as PostgreSQL's own.
 *
 * Invariant: whatever the bytes, the result is an ordinary ERROR.
 */
#ifndef CFD_SESSION_ERROR_H
#define CFD_SESSION_ERROR_H

#include "postgres.h"
#include "wire/wire.h"

extern void cfd_raise_error(const char *body, uint32 length) pg_attribute_noreturn();
/* One that came within an answer. */
extern void cfd_raise(const CfdReadError *error) pg_attribute_noreturn();

#endif
