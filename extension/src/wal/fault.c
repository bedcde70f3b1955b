/*
 * fault.c
 *	  Deaths for tests: see fault.h.
 *
 * Invariant: see fault.h.
 */
#include "postgres.h"

#include <signal.h>
#include <unistd.h>

#include "common/pg_prng.h"
#include "wal/fault.h"

char	   *cfd_fault_point = NULL;

void
cfd_fault_at(const char *name)
{
	size_t		length = strlen(name);
	const char *rest = cfd_fault_point + length;

	if (strncmp(cfd_fault_point, name, length) != 0 || (*rest != '\0' && *rest != '/'))
		return;
	if (*rest == '/' && pg_prng_double(&pg_global_prng_state) * atoi(rest + 1) >= 1)
		return;
	kill(getpid(), SIGKILL);
}
