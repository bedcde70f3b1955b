/*
 * cut.h
 *	  Values that PostgreSQL cuts in an error's detail.
 *
 * "Failing row contains (...)" shows at most 64 bytes of each value. An envelope
 * that is cut there cannot be opened, so what was made for messages is
 * remembered, and whole envelopes take the places of cut ones; the client cuts
 * the value.
 *
 * Invariant: what is remembered is bounded.
 */
#ifndef CFD_VALUE_CUT_H
#define CFD_VALUE_CUT_H

#include "postgres.h"
#include "fmgr.h"

/* Remembers the text of a value, if it is for a message and will be cut there. */
extern void cfd_cut_remember(const FmgrInfo *flinfo, const char *text);
/*
 * The detail with whole envelopes, each followed by CFD_ENVELOPE_CUT, allocated
 * in the current memory context; the same pointer if there are none. Forgets them.
 */
extern char *cfd_cut_restore(char *detail);

#endif
