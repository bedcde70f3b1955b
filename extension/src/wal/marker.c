/*
 * marker.c
 *	  The file that identifies the store; see marker.h.
 *
 * Invariant: the file is either complete or absent; an unreadable file is an
 * error and never counts as "no store".
 */
#include "postgres.h"

#include <inttypes.h>

#include <fcntl.h>
#include <unistd.h>

#include "storage/fd.h"
#include "wal/marker.h"

#define FORMAT "confide store %016" PRIx64 "\n"
#define LENGTH 31

static void
cannot(const char *what)
{
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not %s file \"%s\": %m", what, CFD_MARKER_NAME)));
}

bool
cfd_marker_exists(void)
{
	return access(CFD_MARKER_NAME, F_OK) == 0;
}

uint64
cfd_marker_read(void)
{
	char		text[LENGTH + 1];
	uint64		store;
	ssize_t		got;
	int			fd = OpenTransientFile(CFD_MARKER_NAME, O_RDONLY | PG_BINARY);

	if (fd < 0)
	{
		if (errno != ENOENT)
			cannot("open");
		return 0;
	}
	got = read(fd, text, LENGTH);
	if (got < 0)
		cannot("read");
	CloseTransientFile(fd);
	text[got] = '\0';
	if (got != LENGTH || sscanf(text, FORMAT, &store) != 1 || store == 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("file \"%s\" of the cluster is damaged", CFD_MARKER_NAME),
				 errhint("Restore it from a base backup.")));
	return store;
}

void
cfd_marker_write(uint64 store)
{
	char	   *text = psprintf(FORMAT, store);
	int			fd = OpenTransientFile(CFD_MARKER_NAME ".new", O_WRONLY | O_CREAT | O_TRUNC | PG_BINARY);

	Assert(strlen(text) == LENGTH);
	if (fd < 0)
		cannot("create");
	errno = 0;
	if (write(fd, text, LENGTH) != LENGTH || pg_fsync(fd) != 0)
	{
		if (errno == 0)
			errno = ENOSPC;
		cannot("write");
	}
	CloseTransientFile(fd);
	durable_rename(CFD_MARKER_NAME ".new", CFD_MARKER_NAME, ERROR);
	pfree(text);
}
