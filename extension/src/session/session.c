/*
 * session.c
 *	  Keeper sessions in shared memory; see session.h.
 *
 * An array with one entry per PGPROC. No lock is needed: a leader writes its
 * entry before it launches workers, and a worker reads only its leader's
 * entry.
 *
 * Invariant: only processes that may have parallel workers now have an entry.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "session/channel.h"
#include "session/session.h"
#include "compat/compat.h"
#include "access/twophase.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"

static CfdSession *sessions = NULL;
static bool exit_registered = false;
/* Number of running statements that have announced workers. */
static int	announced = 0;

static Size
sessions_size(void)
{
	return mul_size(sizeof(CfdSession), CFD_PROC_COUNT);
}

void
cfd_session_request_shmem(void)
{
	RequestAddinShmemSpace(sessions_size());
}

void
cfd_session_init_shmem(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	sessions = ShmemInitStruct("confide sessions", sessions_size(), &found);
	if (!found)
		memset(sessions, 0, sessions_size());
	LWLockRelease(AddinShmemInitLock);
}

static CfdSession *
cfd_session_entry_of(PGPROC *proc)
{
	int			number = CFD_PROC_NUMBER(proc);

	if (sessions == NULL || number < 0 || number >= CFD_PROC_COUNT)
		return NULL;
	return &sessions[number];
}

static void
clear_at_exit(int code, Datum arg)
{
	(void) code;
	(void) arg;
	cfd_session_clear();
}

void
cfd_session_announce(void)
{
	CfdSession *entry = cfd_session_entry_of(MyProc);
	CfdWireAnnounce body;
	CfdSession	made;
	uint32		length;

	StaticAssertStmt(sizeof(body) == sizeof(made.pass), "a pass is what is announced");
	if (!pg_strong_random(&body, sizeof(body)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate a random pass for parallel workers")));
	if (!exit_registered)
	{
		on_shmem_exit(clear_at_exit, (Datum) 0);
		exit_registered = true;
	}
	memcpy(made.pass, &body, sizeof(made.pass));
	cfd_call(CFD_KIND_ANNOUNCE, &body, sizeof(body), NULL, 0, &length);
	made.id = cfd_channel.link.welcome.session;
	if (entry != NULL)
		*entry = made;
	announced++;
}

void
cfd_session_withdraw(void)
{
	if (--announced > 0)
		return;
	cfd_session_clear();
	cfd_try_send(CFD_KIND_WITHDRAW, NULL, 0, false);
}

void
cfd_session_clear(void)
{
	CfdSession *entry = MyProc != NULL ? cfd_session_entry_of(MyProc) : NULL;

	if (entry != NULL)
		memset(entry, 0, sizeof(*entry));
}

bool
cfd_session_leader(CfdSession *session)
{
	CfdSession *entry;

	if (!IsParallelWorker() || MyProc->lockGroupLeader == NULL)
		return false;
	entry = cfd_session_entry_of(MyProc->lockGroupLeader);
	if (entry == NULL || entry->id == 0)
		return false;
	*session = *entry;
	return true;
}
