/*
 * sampled.h
 *	  Detects operations in a partial index's predicate that ANALYZE
 *	  evaluates for its sample without a client, as in autovacuum or a
 *	  superuser's VACUUM ANALYZE.
 *
 * In that case the keeper is not asked. Operations return a FID without a
 * value, and tests are true, so that the index is treated as covering all
 * rows. The reason is that an index predicate can contain export envelopes, so
 * its evaluation would disclose how values compare with them.
 *
 * Invariant: returns true only for what ends up in statistics.
 */
#ifndef CFD_OPS_SAMPLED_H
#define CFD_OPS_SAMPLED_H

#include "postgres.h"

extern bool cfd_sampled_without_client(void);

#endif
