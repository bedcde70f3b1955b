/*
 * sampled.h
 *	  Whether an operation is part of a partial index's predicate that ANALYZE evaluates for its
 *	  sample, without a client: a superuser's VACUUM ANALYZE, and autovacuum.
 *
 * Then the keeper is asked nothing, operations give an identifier without a value, and tests are true:
 * the index is taken for one of all rows. An index predicate could be made from export
 * envelopes, so that to evaluate it would tell how values compare with them.
 *
 * Invariant: never true but for what becomes statistics.
 */
#ifndef CFD_OPS_SAMPLED_H
#define CFD_OPS_SAMPLED_H

#include "postgres.h"

extern bool cfd_sampled_without_client(void);

#endif
