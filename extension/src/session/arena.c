/*
 * arena.c
 *	  Lifetime of temporary values; see arena.h.
 *
 * PostgreSQL resets MessageContext before it reads the next client message. At
 * that point nothing is running, and only portals can name values of the
 * statement arena: portals that are bound but not executed, cursors, portals
 * fetched in parts, and held cursors. If there are none, the arena is
 * released. The unnamed portal stays around after its last row and does not
 * count.
 *
 * Invariant: nothing that the callback calls raises an error.
 */
#include "postgres.h"

#include "session/arena.h"
#include "session/channel.h"
#include "nodes/memnodes.h"
#include "nodes/parsenodes.h"
#include "utils/memutils.h"
#include "utils/portal.h"

#define NEXT_STATEMENT cfd_channel.next[CFD_STATEMENT]

void		(*cfd_arena_forgotten) (void) = NULL;

static bool watching = false;
static MemoryContextCallback boundary_callback;

/* Sets the next slot number of an arena. Numbering continues across connections. */
static void
number_from(CfdArena arena, uint32 partition, uint64 slot)
{
	cfd_channel.next[arena] = cfd_fid(partition, slot);
}

void
cfd_arena_open(uint32 arena)
{
	number_from(CFD_STATEMENT, arena, cfd_fid_slot(cfd_channel.next[CFD_STATEMENT]));
	number_from(CFD_PLAN, arena + 1, cfd_fid_slot(cfd_channel.next[CFD_PLAN]));
	cfd_channel.kept = NEXT_STATEMENT;
}

void
cfd_arena_reset(void)
{
	cfd_channel.kept = NEXT_STATEMENT;
	cfd_arena_forgotten();
}

bool
cfd_arena_in_use(void)
{
	return cfd_channel.kept != NEXT_STATEMENT;
}

static void
cfd_arena_give_up(uint64 limit)
{
	CfdWireRelease body = {.arena = cfd_fid_partition(limit),.keep = cfd_fid_slot(limit)};

	if (cfd_try_send(CFD_KIND_RELEASE, &body, sizeof(body), limit - cfd_channel.kept > CFD_FEW_VALUES))
		cfd_channel.kept = limit;
}

void
cfd_arena_release(void)
{
	if (cfd_arena_in_use())
		cfd_arena_give_up(NEXT_STATEMENT);
}

void
cfd_arena_release_below(uint64 limit)
{
	if (limit > cfd_channel.kept)
		cfd_arena_give_up(limit);
}

/* The memory context that is the parent of every portal's context. */
static MemoryContext
portals_context(void)
{
	static MemoryContext found = NULL;

	for (MemoryContext c = TopMemoryContext->firstchild; found == NULL && c != NULL; c = c->nextchild)
	{
		if (strcmp(c->name, "TopPortalContext") == 0)
			found = c;
	}
	return found;
}

static bool
portal_counts(const char *name)
{
	Portal		portal;

	if (name == NULL)
		return true;
	if (strcmp(name, "<unnamed>") == 0)
		name = "";
	portal = GetPortalByName(name);
	if (!PortalIsValid(portal))
		return true;
	/* An active portal belongs to the statement that is running. */
	if (portal->status == PORTAL_DONE || portal->status == PORTAL_FAILED ||
		portal->status == PORTAL_ACTIVE)
		return false;
	/* A portal that returns no rows is at its end from the start. */
	return !(name[0] == '\0' && portal->status == PORTAL_READY &&
			 portal->strategy != PORTAL_MULTI_QUERY && portal->atEnd);
}

bool
cfd_arena_portals_open(void)
{
	MemoryContext top = portals_context();

	if (top == NULL)
		return false;
	for (MemoryContext c = top->firstchild; c != NULL; c = c->nextchild)
	{
		if (strcmp(c->name, "PortalContext") == 0 && portal_counts(c->ident))
			return true;
	}
	return false;
}

bool
cfd_arena_held_cursors(void)
{
	MemoryContext top = portals_context();

	if (top == NULL)
		return false;
	for (MemoryContext c = top->firstchild; c != NULL; c = c->nextchild)
	{
		Portal		portal = NULL;

		if (strcmp(c->name, "PortalContext") == 0 && c->ident != NULL)
			portal = GetPortalByName(c->ident);
		if (PortalIsValid(portal) && (portal->cursorOptions & CURSOR_OPT_HOLD) != 0)
			return true;
	}
	return false;
}

/* Callback for the end of the client message. */
static void
boundary(void *arg)
{
	(void) arg;
	watching = false;
	cfd_channel.ready = false;
	cfd_channel.query = 0;
	cfd_arena_forgotten();
	cfd_channel_close_broken();
	if (cfd_arena_in_use() && !cfd_arena_portals_open())
	{
		if (cfd_channel.connected)
			cfd_arena_release();
		else
			cfd_channel.kept = NEXT_STATEMENT;
	}
}

void
cfd_arena_watch(void)
{
	if (watching || MessageContext == NULL)
		return;
	boundary_callback.func = boundary;
	boundary_callback.arg = NULL;
	MemoryContextRegisterResetCallback(MessageContext, &boundary_callback);
	watching = true;
}
