/*
 * functions.c
 *	  SQL functions about recovery: checkpoints of the keeper, and the
 *	  state of recovery.
 *
 * Invariant: they show no values, and work while the keeper is down.
 */
#include "postgres.h"

#include <inttypes.h>

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"
#include "session/gate.h"

#define STAT_COLUMNS 9

PG_FUNCTION_INFO_V1(cfd_checkpoint);
Datum
cfd_checkpoint(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_LSN(cfd_state_checkpoint());
}

static const char *
standing(const char *reason)
{
	if (reason != NULL)
		return "not serving";
	return pg_atomic_read_u32(&cfd_standby->follows) != 0 ? "following" : "serving";
}

static void
set_text(Datum *value, bool *null, const char *text)
{
	*null = text == NULL;
	*value = text != NULL ? CStringGetTextDatum(text) : (Datum) 0;
}

static void
set_lsn(Datum *value, bool *null, XLogRecPtr position)
{
	*null = XLogRecPtrIsInvalid(position);
	*value = LSNGetDatum(position);
}

PG_FUNCTION_INFO_V1(cfd_stat_recovery);
Datum
cfd_stat_recovery(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Datum		values[STAT_COLUMNS];
	bool		nulls[STAT_COLUMNS] = {0};
	CfdProgress progress;
	char	   *reason = cfd_state_reason();
	bool		standby = RecoveryInProgress();
	XLogRecPtr	applied = pg_atomic_read_u64(&cfd_standby->applied);
	XLogRecPtr	end = standby ? GetXLogReplayRecPtr(NULL) : GetXLogInsertRecPtr();

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	cfd_state_progress(&progress);
	set_text(&values[0], &nulls[0], standing(reason));
	set_text(&values[1], &nulls[1], reason);
	set_text(&values[2], &nulls[2],
			 progress.store != 0 ? psprintf("%016" PRIx64, progress.store) : NULL);
	set_lsn(&values[3], &nulls[3], progress.checkpoint);
	nulls[4] = progress.checkpoint_time == 0;
	values[4] = TimestampTzGetDatum(progress.checkpoint_time);
	values[5] = Int64GetDatum(progress.checkpoints);
	values[6] = Int64GetDatum(progress.failures);
	set_lsn(&values[7], &nulls[7], standby && applied != PG_UINT64_MAX ? applied : InvalidXLogRecPtr);
	nulls[8] = XLogRecPtrIsInvalid(progress.checkpoint);
	values[8] = Int64GetDatum(end > progress.checkpoint ? end - progress.checkpoint : 0);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}
