/*
 * answers.h
 *	  What channel.c, which sends, and answers.c, which receives, know of each other.
 *
 * Invariant: as of channel.h.
 */
#ifndef CFD_SESSION_ANSWERS_H
#define CFD_SESSION_ANSWERS_H

#include "postgres.h"
#include "session/channel.h"

#define ch cfd_channel

/* answers.c */
extern void cfd_channel_settle(CfdRequest *request, CfdRequestState state);
extern void cfd_channel_lose_pending(void);
/* Skips what is there of answers that nobody waits for. */
extern void cfd_channel_skip_answers(void);
extern void cfd_channel_receive_answer(uint32 sequence, uint32 *length);

/* channel.c */
extern void cfd_channel_keeper_is_gone(void);
extern void cfd_channel_publish_requests(void);
extern void cfd_channel_publish_answers(void);
/*
 * Sleeps until look(arg) is true or nothing can come any more. The flags say to
 * the keeper what we sleep for.
 */
extern void cfd_channel_wait_for(bool (*look) (void *), void *arg, CfdSpin *spin, bool room, bool answers);

#endif
