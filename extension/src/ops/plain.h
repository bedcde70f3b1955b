/*
 * plain.h
 *	  Rejection of plaintext constants.
 *
 * Invariant: the error does not repeat the constant.
 */
#ifndef CFD_OPS_PLAIN_H
#define CFD_OPS_PLAIN_H

#include "postgres.h"
#include "compat/compat.h"

pg_noreturn extern void cfd_refuse_constant(uint8 type);

#endif
