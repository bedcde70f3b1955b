/*
 * connect.c
 *	  Opening a channel; see connect.h.
 *
 * Waits are limited by confide.connect_timeout and can be interrupted.
 * Everything the keeper passes over is checked before it is used: magic
 * numbers, version, and that the shared memory is sealed against shrinking and
 * growing, since an access beyond its end would raise SIGBUS. A device that
 * the administrator names is taken to have the size that it has now.
 *
 * Invariant: no descriptor and no mapping survives an error.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "session/connect.h"
#include "session/events.h"
#include "compat/compat.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/timestamp.h"
#include "session/gate.h"

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#define F_SEAL_SEAL 0x0001
#define F_SEAL_SHRINK 0x0002
#define F_SEAL_GROW 0x0004
#endif
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Delay between attempts while the keeper is not ready, in ms. */
#define RETRY_MS 20

#define HINT_RUNNING "Check that confide-keeper runs and that confide.keeper_socket names its socket."

char	   *cfd_keeper_socket = NULL;
char	   *cfd_keeper_memory = NULL;
int			cfd_connect_timeout = 5000;

bool
cfd_keeper_wanted(void)
{
	return cfd_keeper_socket != NULL && cfd_keeper_socket[0] != '\0';
}

static void
cannot_connect(const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
			 errmsg("could not connect to Confide's keeper at socket \"%s\": %s",
					cfd_keeper_socket, what),
			 errhint(HINT_RUNNING)));
}

static void
cannot_connect_errno(void)
{
	char	   *what = pstrdup(strerror(errno));

	cannot_connect(what);
}

/*
 * Waits for a socket event, or for at most "moment" milliseconds if that is
 * positive. Raises an error at the deadline.
 */
static void
wait_until(int sock, int events, TimestampTz deadline, long moment)
{
	long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);
	int			happened;

	if (left <= 0)
		cannot_connect("timeout expired");
	if (moment > 0)
		left = Min(left, moment);
	happened = WaitLatchOrSocket(MyLatch,
								 events | WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
								 sock, left, cfd_wait_event());
	if (happened & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

static int
open_socket(TimestampTz deadline)
{
	struct sockaddr_un address;
	int			sock;

	if (!cfd_keeper_wanted())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("there is no keeper"),
				 errdetail("confide.keeper_socket is empty: only columns of the family soft_ can be used."),
				 errhint("Types enc_... and rnd_... need a keeper.")));
	memset(&address, 0, sizeof(address));
	address.sun_family = AF_UNIX;
	if (strlen(cfd_keeper_socket) >= sizeof(address.sun_path))
		cannot_connect("the path is too long");
	strlcpy(address.sun_path, cfd_keeper_socket, sizeof(address.sun_path));

	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		cannot_connect_errno();
	PG_TRY();
	{
		while (connect(sock, (struct sockaddr *) &address, sizeof(address)) != 0)
		{
			if (errno == EAGAIN)	/* the keeper's listen queue is full */
				wait_until(PGINVALID_SOCKET, 0, deadline, 10);
			else if (errno != EINTR)
				cannot_connect_errno();
		}
	}
	PG_CATCH();
	{
		close(sock);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return sock;
}

static void
send_hello(int sock, uint64 session, const unsigned char *pass)
{
	unsigned char bytes[CFD_HELLO_BYTES];
	CfdHello	hello;
	ssize_t		sent;

	memset(&hello, 0, sizeof(hello));
	hello.version = CFD_CONTRACT_VERSION;
	hello.pid = (uint32) MyProcPid;
	hello.database = MyDatabaseId;
	/* The server's own processes have no role where they have no database. */
	hello.role = OidIsValid(MyDatabaseId) ? GetSessionUserId() : InvalidOid;
	hello.session = session;
	if (session != 0)
		memcpy(hello.pass, pass, sizeof(hello.pass));
	cfd_encode_hello(bytes, &hello);
	do
		sent = send(sock, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		cannot_connect_errno();
	if (sent != sizeof(bytes))
		cannot_connect("short write");
}

/* Takes the first descriptor out of a received message, and closes any others. */
static void
take_descriptor(struct msghdr *message, int *fd)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c))
	{
		int			count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (int i = 0; i < count; i++)
		{
			int			got;

			memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (*fd < 0)
				*fd = got;
			else
				close(got);
		}
	}
}

static void
receive_welcome(int sock, CfdWelcome *welcome, int *fd, TimestampTz deadline)
{
	unsigned char bytes[CFD_WELCOME_BYTES];
	size_t		done = 0;

	while (done < sizeof(bytes))
	{
		union
		{
			char		bytes[CMSG_SPACE(2 * sizeof(int))];
			struct cmsghdr align;
		}			control;
		struct iovec piece = {bytes + done, sizeof(bytes) - done};
		struct msghdr message;
		ssize_t		got;

		memset(&message, 0, sizeof(message));
		message.msg_iov = &piece;
		message.msg_iovlen = 1;
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		got = recvmsg(sock, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		if (got > 0)
		{
			take_descriptor(&message, fd);
			done += got;
		}
		else if (got == 0)
			cannot_connect("it closed the connection");
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			wait_until(sock, WL_SOCKET_READABLE, deadline, 0);
		else if (errno != EINTR)
			cannot_connect_errno();
	}
	cfd_decode_welcome(welcome, bytes);
}

/* The recovery worker has published the reason. */
static void
cfd_connect_not_ready(void)
{
	char	   *reason = cfd_state_reason();

	ereport(ERROR,
			(errcode(ERRCODE_CANNOT_CONNECT_NOW),
			 errmsg("Confide's keeper is not ready yet"),
			 errdetail("%s", reason != NULL ? reason : "It waits for the recovery worker of Confide."),
			 errhint("Try again soon; if it stays so, the server's log says why.")));
}

static void
check_welcome(const CfdWelcome *welcome)
{
	if (welcome->magic != CFD_HELLO_MAGIC)
		cannot_connect("whoever listens there is not a keeper");
	if (welcome->status == CFD_STATUS_WRONG_VERSION || welcome->version != CFD_CONTRACT_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("Confide's keeper speaks version %u of the contract, this extension version %u",
						welcome->version, CFD_CONTRACT_VERSION),
				 errhint("Install keeper and extension of the same release, and restart both.")));
	if (welcome->status == CFD_STATUS_RECOVERING)
		cfd_connect_not_ready();
	switch (welcome->status)
	{
		case CFD_STATUS_ACCEPTED:
			break;
		case CFD_STATUS_WRONG_USER:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION),
					 errmsg("Confide's keeper does not serve this operating system user"),
					 errhint("Check the user in the keeper's configuration.")));
			break;
		case CFD_STATUS_TOO_MANY_CHANNELS:
			ereport(ERROR,
					(errcode(ERRCODE_TOO_MANY_CONNECTIONS),
					 errmsg("Confide's keeper has too many channels already"),
					 errhint("Raise the limit in the keeper's configuration.")));
			break;
		case CFD_STATUS_NO_SUCH_SESSION:
			ereport(ERROR,
					(errcode(ERRCODE_CONNECTION_DOES_NOT_EXIST),
					 errmsg("Confide's keeper does not know the session of the parallel leader"),
					 errhint("Try again: the keeper was restarted.")));
			break;
		default:
			cannot_connect("it gave an unknown answer");
	}
	if (welcome->arena < CFD_ARENA_BASE || welcome->arena >= CFD_PARTITION_END - 1)
		cannot_connect("it gave an impossible arena");
}

/*
 * Whether the recovery worker has admitted this keeper. The worker itself has
 * no database and is not asked.
 */
static bool
admitted(const CfdWelcome *welcome)
{
	return MyDatabaseId == InvalidOid || cfd_state_admitted(welcome->incarnation);
}

/* The device of confide.keeper_memory, in which there is a range with this number. */
static int
open_device(uint32 range)
{
	struct stat status;
	int			fd;

	if (cfd_keeper_memory == NULL || cfd_keeper_memory[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
				 errmsg("Confide's keeper shares memory by a device, of which this server does not know"),
				 errhint("Set confide.keeper_memory to the device that the keeper's channel_memory is in this guest.")));
	fd = open(cfd_keeper_memory, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) != 0 || status.st_size / CFD_MAPPING_BYTES < range)
	{
		char	   *what = fd < 0 ? pstrdup(strerror(errno)) : "It is smaller than the keeper's.";

		if (fd >= 0)
			close(fd);
		ereport(ERROR,
				(errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
				 errmsg("could not use the memory \"%s\" that is shared with Confide's keeper", cfd_keeper_memory),
				 errdetail_internal("%s", what),
				 errhint("Check confide.keeper_memory, and that this server's user may read and write the device.")));
	}
	return fd;
}

static void
check_sealed(int fd)
{
	struct stat status;
	int			seals;

	if (fd < 0)
		cannot_connect("there came no shared memory");
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS) != SEALS)
		cannot_connect("its shared memory is not sealed");
	if (fstat(fd, &status) != 0 || status.st_size != CFD_MAPPING_BYTES)
		cannot_connect("its shared memory has the wrong size");
}

/* "range": of a device, from 1; 0: the memory is that of the descriptor */
static char *
map_memory(int fd, uint32 range)
{
	off_t		start = 0;
	int			device = -1;
	char	   *base;

	if (range == 0)
		check_sealed(fd);
	else
	{
		device = open_device(range);
		start = (off_t) (range - 1) * CFD_MAPPING_BYTES;
	}
	base = mmap(NULL, CFD_MAPPING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
				range == 0 ? fd : device, start);
	if (device >= 0)
		close(device);
	if (base == MAP_FAILED)
		cannot_connect_errno();
	if (cfd_get32(base + CFD_RING_MAGIC_OFFSET) != CFD_RING_MAGIC ||
		cfd_get32(base + CFD_RING_VERSION_OFFSET) != CFD_CONTRACT_VERSION)
	{
		munmap(base, CFD_MAPPING_BYTES);
		cannot_connect("its shared memory has the wrong magic number or version");
	}
	return base;
}

/*
 * Makes one attempt. Returns false if the keeper is not ready yet and there is
 * time to try again. Each attempt has its own full timeout, so that a caller
 * that waited in vain gets the keeper's reason rather than "timeout expired".
 */
static bool
cfd_connect_attempt(CfdLink *link, uint64 session, const unsigned char *pass, TimestampTz last)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), cfd_connect_timeout);
	volatile int sock;
	int			fd = -1;
	bool		later = false;

	sock = open_socket(deadline);
	PG_TRY();
	{
		send_hello(sock, session, pass);
		receive_welcome(sock, &link->welcome, &fd, deadline);
		later = link->welcome.magic == CFD_HELLO_MAGIC &&
			link->welcome.version == CFD_CONTRACT_VERSION &&
			(link->welcome.status == CFD_STATUS_RECOVERING || !admitted(&link->welcome)) &&
			GetCurrentTimestamp() < last;
		if (!later)
		{
			check_welcome(&link->welcome);
			if (!admitted(&link->welcome))
				cfd_connect_not_ready();
			link->base = map_memory(fd, link->welcome.range);
		}
	}
	PG_CATCH();
	{
		close(sock);
		if (fd >= 0)
			close(fd);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (fd >= 0)
		close(fd);
	if (later)
	{
		close(sock);
		return false;
	}
	ReserveExternalFD();
	link->sock = sock;
	return true;
}

void
cfd_connect(CfdLink *link, uint64 session, const unsigned char *pass)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), cfd_connect_timeout);

	while (!cfd_connect_attempt(link, session, pass, deadline))
	{
		TimestampTz soon = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), RETRY_MS + 1);

		wait_until(PGINVALID_SOCKET, 0, soon, RETRY_MS);
	}
}

void
cfd_disconnect(CfdLink *link)
{
	munmap(link->base, CFD_MAPPING_BYTES);
	close(link->sock);
	ReleaseExternalFD();
	link->base = NULL;
	link->sock = -1;
}
