/*
 * policy.c
 *	  Writing to the WAL what owners and definitions said; see policy.h.
 *
 * A backend does so before it acknowledges a command. If it dies before, the
 * next one that asks gets the same again, at the latest the recovery worker
 * before a checkpoint.
 *
 * Invariant: as in policy.h. The keeper is told that a record is logged only
 * after it was flushed, since later records go on from there.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "session/channel.h"
#include "wal/fault.h"
#include "wal/policy.h"
#include "wal/rmgr.h"

void
cfd_log_policies(void)
{
	if (RecoveryInProgress())
		return;
	for (;;)
	{
		CfdReadPolicyLogAnswer read;
		CfdWirePolicyLogged logged;
		uint32		length;
		const char *answer = cfd_call(CFD_KIND_POLICY_LOG, NULL, 0, NULL, 0, &length);

		CFD_DECODE(policy_log_answer, answer, length, &read);
		if (read.record_length == 0)
			return;
		if (read.record_length < CFD_WAL_RECORD_MIN)
			cfd_violation("redo record is too short");
		logged.number = read.head.number;
		cfd_wal_log((const char *) read.record, read.record_length, true);
		XLogFlush(XactLastRecEnd);
		cfd_fault("policy-logged");
		cfd_send(CFD_KIND_POLICY_LOGGED, &logged, sizeof(logged), NULL, 0);
	}
}
