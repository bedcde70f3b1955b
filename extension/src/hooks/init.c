/*
 * init.c
 *	  Initialises the library: settings, shared memory, hooks.
 *
 * Invariant: the library is loaded in all processes or in none (shared_preload_libraries), since
 * protected columns depend on its hooks.
 */
#include "postgres.h"

#include "cell/cell.h"
#include "order/ranks.h"
#include "value/adopt.h"
#include "value/delivery.h"
#include "value/kept.h"
#include "switch/switch.h"
#include "result/results.h"
#include "index/remembered.h"
#include "index/search.h"
#include "known/known.h"
#include "ledger/ledger.h"
#include "schema/schema.h"
#include "soft/soft.h"
#include "session/arena.h"
#include "session/channel.h"
#include "wire/columns.h"
#include "session/connect.h"
#include "session/gate.h"
#include "session/mode.h"
#include "session/session.h"
#include "session/ticket.h"
#include "fmgr.h"
#include "gc/collect.h"
#include "session/pins.h"
#include "hooks/hooks.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "value/types.h"
#include "utils/guc.h"
#include "wal/recovery.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static shmem_request_hook_type previous_shmem_request = NULL;
static shmem_startup_hook_type previous_shmem_startup = NULL;

static void
shmem_request(void)
{
	if (previous_shmem_request)
		previous_shmem_request();
	cfd_state_request_shmem();
	cfd_session_request_shmem();
	cfd_pins_request_shmem();
	cfd_schema_request_shmem();
	cfd_kept_request_shmem();
	cfd_numbers_request_shmem();
}

static void
shmem_startup(void)
{
	if (previous_shmem_startup)
		previous_shmem_startup();
	cfd_state_init_shmem();
	cfd_session_init_shmem();
	cfd_pins_init_shmem();
	cfd_schema_init_shmem();
	cfd_kept_init_shmem();
	cfd_numbers_init_shmem();
}

static void
define_channel_settings(void)
{
	DefineCustomStringVariable("confide.keeper_socket",
							   "Path of the Unix socket on which the keeper listens.",
							   NULL,
							   &cfd_keeper_socket,
							   "/run/confide/keeper.sock",
							   PGC_SIGHUP,
							   GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("confide.keeper_memory",
							   "Device that a keeper in another guest maps, too, for the memory of channels.",
							   NULL,
							   &cfd_keeper_memory,
							   "",
							   PGC_SIGHUP,
							   GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
	cfd_ticket_init();
	cfd_mode_init();
	DefineCustomIntVariable("confide.connect_timeout",
							"Longest time to wait for the keeper to accept a connection.",
							NULL,
							&cfd_connect_timeout,
							5000, 1, 600000,
							PGC_SUSET,
							GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("confide.locked_timeout",
							"Longest wait for the keeper while a page of an index is locked.",
							NULL,
							&cfd_locked_timeout,
							30000, 1, 600000,
							PGC_SUSET,
							GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("confide.one_way",
							 "Operations whose result stays in the keeper are sent without waiting for an answer.",
							 "Off only to measure what that is worth.",
							 &cfd_one_way,
							 true,
							 PGC_USERSET,
							 GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);
}

static void
define_batch_settings(void)
{
	DefineCustomBoolVariable("confide.enable_bulk_sort",
							 "Protected sort keys are ranked all at once, not compared one by one.",
							 NULL,
							 &cfd_enable_bulk_sort,
							 true,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("confide.bulk_sort_rows",
							"Most rows of a sort that are ranked at once; larger sorts compare.",
							NULL,
							&cfd_bulk_sort_rows,
							CFD_RANK_ROWS_MAX, 0, CFD_RANK_ROWS_MAX,
							PGC_USERSET,
							0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("confide.result_batch",
							"Most rows of a result that wait for their envelopes together.",
							"0: each value is asked for alone.",
							&cfd_result_batch,
							1024, 0, 4096,
							PGC_USERSET,
							0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("confide.batch_rows",
							"Most rows that batched scans, aggregates and sorts send to the keeper at once.",
							NULL,
							&cfd_batch_rows,
							CFD_BATCH_ROWS_MAX, 1, CFD_BATCH_ROWS_MAX,
							PGC_USERSET,
							0,
							NULL, NULL, NULL);
	cfd_adopt_init();
	cfd_delivery_init();
	cfd_switch_init();
	cfd_gc_init();
	DefineCustomBoolVariable("confide.enable_index_search",
							 "B-trees on protected columns are searched a page at a time.",
							 NULL,
							 &cfd_enable_index_search,
							 true,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("confide.enable_page_memory",
							 "The keeper remembers pages of B-trees that a session searches.",
							 NULL,
							 &cfd_enable_page_memory,
							 true,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("confide must be in shared_preload_libraries"),
				 errhint("Add it in postgresql.conf and restart PostgreSQL.")));
	cfd_wal_init();
	define_channel_settings();
	define_batch_settings();
	previous_shmem_request = shmem_request_hook;
	shmem_request_hook = shmem_request;
	previous_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;
	cfd_types_init();
	cfd_statement_init();
	cfd_transaction_init();
	cfd_refusals_init();
	cfd_parse_init();
	cfd_report_init();
	cfd_messages_init();
	cfd_planner_init();
	cfd_results_init();
	cfd_arena_forgotten = cfd_known_end_message;
	MarkGUCPrefixReserved("confide");
}
