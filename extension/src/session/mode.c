/*
 * mode.c
 *	  The server's mode.
 *
 * In execution mode no role that is a superuser, or can become one, may log
 * in, whatever the authentication method. Open sessions of such roles end at
 * their next statement, or earlier (confide.end_superusers). In maintenance
 * mode, which is the default, every role may log in. This module does not
 * decide who may change the mode: that takes ALTER SYSTEM on confide.mode, or
 * write access to the server's configuration files.
 *
 * Invariant: the decision is made when a session begins, from the catalogs as
 * they are then; a role that was just made a member of a superuser role is
 * refused.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_authid.h"
/*
 * The GSSAPI headers need not be installed; struct Port has the same layout
 * without them (libpq-be.h).
 */
#undef ENABLE_GSS
#include "libpq/auth.h"
#include "miscadmin.h"
#include "session/mode.h"
#include "utils/acl.h"
#include "utils/guc.h"

#include <signal.h>

typedef enum CfdMode
{
	CFD_MAINTENANCE,
	CFD_EXECUTION
} CfdMode;

static const struct config_enum_entry modes[] = {
	{"maintenance", CFD_MAINTENANCE, false},
	{"execution", CFD_EXECUTION, false},
	{NULL, 0, false}
};

static int	mode = CFD_MAINTENANCE;
static bool privileged = false; /* whether this session's role can become superuser */
static ClientAuthentication_hook_type previous_authentication = NULL;

/*
 * Whether the role is, or can become, a role that can do on the host what the
 * server can.
 */
static bool
reaches_superuser(Oid role)
{
	bool		reaches = false;
	Relation	roles = table_open(AuthIdRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(roles, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;

	while (!reaches && (tuple = systable_getnext(scan)) != NULL)
	{
		Form_pg_authid other = (Form_pg_authid) GETSTRUCT(tuple);

		/*
		 * A role with CREATEROLE can grant itself the roles that write files
		 * and run programs.
		 */
		if (other->rolsuper || other->rolcreaterole ||
			other->oid == ROLE_PG_WRITE_SERVER_FILES || other->oid == ROLE_PG_EXECUTE_SERVER_PROGRAM)
			reaches = is_member_of_role_nosuper(role, other->oid);
	}
	systable_endscan(scan);
	table_close(roles, AccessShareLock);
	return reaches;
}

static void
authenticated(Port *port, int status)
{
	Oid			role;

	if (previous_authentication)
		previous_authentication(port, status);
	if (status != STATUS_OK)
		return;
	role = get_role_oid(port->user_name, true);
	privileged = OidIsValid(role) && reaches_superuser(role);
	if (privileged && mode == CFD_EXECUTION)
		ereport(FATAL,
				(errcode(ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION),
				 errmsg("no superuser logs in while the server is in execution mode"),
				 errdetail("The role is a superuser, can become one, or may make roles, write the server's files or run its programs."),
				 errhint("confide mode maintenance lets superusers in, and is logged.")));
}

/*
 * Assign hook. It runs when the configuration is reloaded, which a session
 * does before its next statement. An error raised here would be an error of
 * the configuration file, so we send ourselves SIGTERM; it is processed at the
 * next CHECK_FOR_INTERRUPTS, before the statement is parsed.
 */
static void
mode_changed(int to, void *extra)
{
	if (to == CFD_EXECUTION && privileged)
		kill(MyProcPid, SIGTERM);
}

void
cfd_mode_init(void)
{
	DefineCustomEnumVariable("confide.mode",
							 "In execution mode no superuser logs in.",
							 NULL,
							 &mode,
							 CFD_MAINTENANCE,
							 modes,
							 PGC_SIGHUP,
							 0,
							 NULL, mode_changed, NULL);
	previous_authentication = ClientAuthentication_hook;
	ClientAuthentication_hook = authenticated;
}
