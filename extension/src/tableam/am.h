/*
 * am.h
 *	  Release of temporary values between the batches of a COPY.
 *
 * Invariant: only values that no row yet to be written can name are released.
 */
#ifndef CFD_TABLEAM_AM_H
#define CFD_TABLEAM_AM_H

#include "postgres.h"
#include "utils/relcache.h"

/* The outermost COPY FROM begins or ends (hooks/statement.c). */
extern void cfd_copy_begin(void);
extern void cfd_copy_end(void);
/* A batch of rows has been written to a relation. */
extern void cfd_copy_batch_done(Relation relation);

#endif
