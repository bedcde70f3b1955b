/*
 * plain.h
 *	  The refusal of plaintext constants.
 *
 * Invariant: the constant is not repeated in the error.
 */
#ifndef CFD_OPS_PLAIN_H
#define CFD_OPS_PLAIN_H

#include "postgres.h"

extern void cfd_refuse_constant(uint8 type) pg_attribute_noreturn();

#endif
