/*
 * answers.h
 *	  Interface between channel.c, which sends requests, and answers.c,
 *	  which receives answers. Private to these two files.
 *
 * Invariant: as in channel.h.
 */
#ifndef CFD_SESSION_ANSWERS_H
#define CFD_SESSION_ANSWERS_H

#include "postgres.h"
#include "session/channel.h"

#define ch cfd_channel

/* answers.c */
extern void cfd_channel_settle(CfdRequest *request, CfdRequestState state);
extern void cfd_channel_lose_pending(void);
/* Discards whatever has arrived of answers that nobody waits for. */
extern void cfd_channel_skip_answers(void);
extern void cfd_channel_receive_answer(uint32 sequence, uint32 *length);

/* channel.c */
extern void cfd_channel_keeper_is_gone(void);
extern void cfd_channel_publish_requests(void);
extern void cfd_channel_publish_answers(void);
/* Whether a keeper that is woken runs beside us: spinning has paid off lately. */
extern bool cfd_channel_has_idle_cpus(void);
/*
 * Sleeps until look(arg) returns true or nothing more can arrive. The flags
 * tell the keeper what to wake us for: room in the request ring, or answers.
 */
extern void cfd_channel_wait_for(bool (*look) (void *), void *arg, CfdSpin *spin, bool room, bool answers);

#endif
