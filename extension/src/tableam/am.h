/*
 * am.h
 *	  Releases temporary values between the batches of a COPY.
 *
 * Invariant: a released value is not needed for any row still to be written.
 */
#ifndef CFD_TABLEAM_AM_H
#define CFD_TABLEAM_AM_H

#include "postgres.h"
#include "utils/relcache.h"

/* The outermost COPY FROM starts or ends (hooks/statement.c). */
extern void cfd_copy_begin(void);
extern void cfd_copy_end(void);
/* A batch of rows has been written to a relation. */
extern void cfd_copy_batch_done(Relation relation);

#endif
