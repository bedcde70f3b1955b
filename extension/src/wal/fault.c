/*
 * fault.c
 *	  Fault injection points; see fault.h.
 *
 * Invariant: as in fault.h.
 */
#include "postgres.h"

#include <signal.h>
#include <unistd.h>

#include "common/pg_prng.h"
#include "wal/fault.h"

char	   *cfd_fault_point = NULL;

#define STOP "stop "

void
cfd_fault_at(const char *name)
{
	bool		stops = strncmp(cfd_fault_point, STOP, strlen(STOP)) == 0;
	const char *point = cfd_fault_point + (stops ? strlen(STOP) : 0);
	size_t		length = strlen(name);
	const char *rest = point + length;

	if (strncmp(point, name, length) != 0 || (*rest != '\0' && *rest != '/'))
		return;
	if (*rest == '/' && pg_prng_double(&pg_global_prng_state) * atoi(rest + 1) >= 1)
		return;
	kill(getpid(), stops ? SIGSTOP : SIGKILL);
}
