/*
 * told.h
 *	  What the keeper is told before requests (told.c). Only channel.c calls it,
 *	  when the channel is being prepared.
 */
#ifndef CFD_SESSION_TOLD_H
#define CFD_SESSION_TOLD_H

#include "postgres.h"

extern void cfd_tell_settings(void);
extern void cfd_tell_ticket(void);
extern void cfd_tell_clock(void);
extern void cfd_tell_statement(void);

/* Writes a request to a channel that is prepared, or is being prepared. */
extern uint32 cfd_write_prepared(uint16 kind, const void *fixed, uint32 fixed_length,
								 const void *tail, uint64 tail_length, bool soon);

#endif
