/*
 * plain.h
 *	  Plain sort keys beside protected ones: those whose order can be told as a number.
 *
 * Invariant: two values compare as their numbers do, unsigned.
 */
#ifndef CFD_ORDER_PLAIN_H
#define CFD_ORDER_PLAIN_H

#include "postgres.h"

/* Whether the values of a plain type can be told as numbers. */
extern bool cfd_plain_key(Oid type);
/* ... and an operator family orders them as the type does itself. */
extern bool cfd_plain_order(Oid type, Oid family);
extern uint64 cfd_plain_number(Datum value, Oid type);

#endif
