/*
 * recorded.c
 *	  Tells the keeper which rows each statement sees, while it records
 *	  (docs/maintenance.md), so that the statement can be replayed with the
 *	  same rows. Nothing is told otherwise.
 *
 * Not here: what is read from a recording (crates/cli/src/snapshots.rs).
 */
#include "postgres.h"

#include "value/recorded.h"
#include "access/parallel.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "session/channel.h"
#include "tcop/tcopprot.h"
#include "utils/snapshot.h"
#include "value/shown.h"

/* Statements that may be told at a time; of more than these the end is not told. */
#define OPEN_MAX 8

/* The last snapshot told; another query within the statement may have the same. */
static CfdWireSnapshot told;
static uint64 told_completed;

/* Statements that were told and have not ended; one that failed stays until its place is needed. */
static const QueryDesc *open_statements[OPEN_MAX];
static int	last_opened;

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';';
}

/* As snapshot::hash of crate contract. */
static uint64
hash_text(const char *text)
{
	const char *end = text + strlen(text);
	uint64		hash = CFD_SNAPSHOT_HASH_BEGIN;

	while (is_blank(*text))
		text++;
	while (end > text && is_blank(end[-1]))
		end--;
	for (; text < end; text++)
		hash = (hash ^ (unsigned char) *text) * CFD_SNAPSHOT_HASH_FACTOR;
	return Max(hash, 1);
}

static bool
is_recorded(void)
{
	return cfd_channel.connected && !IsParallelWorker() &&
		*(volatile uint64 *) (cfd_channel.link.base + CFD_WATCH_OFFSET) != 0;
}

/* Whether this is what was told already of the statement that runs. */
static bool
is_told(const CfdWireSnapshot *now, uint64 completed)
{
	return completed != 0 && completed == told_completed && now->xmin == told.xmin &&
		now->xmax == told.xmax && now->own == told.own && now->count == told.count;
}

/* Tells it in order with all else, and makes no statement wait. */
static void
recorded_tell(const CfdWireSnapshot *body, const TransactionId *running)
{
	bool		outstanding = cfd_channel.outstanding;

	cfd_send(CFD_KIND_SNAPSHOT, body, sizeof(*body), running, body->count * sizeof(TransactionId));
	cfd_channel.outstanding = outstanding;
}

static void
open_statement(const QueryDesc *query)
{
	for (int i = 0; i < OPEN_MAX; i++)
	{
		if (open_statements[i] == query)
			return;
	}
	last_opened = (last_opened + 1) % OPEN_MAX;
	open_statements[last_opened] = query;
}

void
cfd_recorded_statement(const QueryDesc *query)
{
	Snapshot	snapshot = query->snapshot;
	const PlannedStmt *plan = query->plannedstmt;
	bool		inner;
	bool		changes;
	CfdWireSnapshot body = {0};

	if (!is_recorded() || debug_query_string == NULL || snapshot == NULL ||
		snapshot->snapshot_type != SNAPSHOT_MVCC || snapshot->takenDuringRecovery)
		return;
	inner = cfd_running.outermost != NULL && strcmp(query->sourceText, debug_query_string) != 0;
	/* A statement with more is not replayed; within one it makes a difference. */
	if (snapshot->xcnt > CFD_SNAPSHOT_RUNNING_MAX && !inner)
		return;
	changes = plan->commandType != CMD_SELECT || plan->rowMarks != NIL || plan->hasModifyingCTE;
	body.position = GetXLogInsertRecPtr();
	body.xmin = snapshot->xmin;
	body.xmax = snapshot->xmax;
	body.own = GetTopTransactionIdIfAny();
	body.flags = changes && !IsolationUsesXactSnapshot() ? CFD_SNAPSHOT_FOLLOWS : 0;
	body.count = Min(snapshot->xcnt, CFD_SNAPSHOT_RUNNING_MAX);
	if (inner && body.flags == 0 && is_told(&body, snapshot->snapXactCompletionCount))
		return;
	body.text = inner ? 0 : hash_text(debug_query_string);
	recorded_tell(&body, snapshot->xip);
	told = body;
	told_completed = snapshot->snapXactCompletionCount;
	if (!inner)
		open_statement(query);
}

void
cfd_recorded_end(const QueryDesc *query)
{
	CfdWireSnapshot body = {.flags = CFD_SNAPSHOT_ENDS};

	for (int i = 0; i < OPEN_MAX; i++)
	{
		if (open_statements[i] != query)
			continue;
		open_statements[i] = NULL;
		body.position = GetXLogInsertRecPtr();
		if (is_recorded())
			recorded_tell(&body, NULL);
	}
}

void
cfd_recorded_position(void)
{
	CfdWireSnapshot body = {.position = GetXLogInsertRecPtr()};

	if (is_recorded())
		recorded_tell(&body, NULL);
}
