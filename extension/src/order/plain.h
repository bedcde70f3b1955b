/*
 * plain.h
 *	  Plain sort keys beside protected ones whose order can be expressed as
 *	  a number.
 *
 * Invariant: two values compare like their numbers, unsigned.
 */
#ifndef CFD_ORDER_PLAIN_H
#define CFD_ORDER_PLAIN_H

#include "postgres.h"

/* Whether the values of a plain type can be sent as numbers. */
extern bool cfd_plain_key(Oid type);
/* ... and the operator family uses the default order of the type. */
extern bool cfd_plain_order(Oid type, Oid family);
extern uint64 cfd_plain_number(Datum value, Oid type);

#endif
