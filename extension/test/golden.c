/*
 * golden.c
 *	  The C side of the contract against bytes made by the Rust side.
 *
 * Mechanism: wire.h must encode and decode as crates/contract does, each body of a
 * message and each answer. Right answer: the bytes of golden.h and
 * golden_messages.h; a message that is cut short is none. A bug would show as keeper and extension that
 * refuse each other, or misread FIDs.
 *
 * Invariant: exit status 0 if and only if everything agrees.
 */
#include <stdio.h>
#include <stdlib.h>

#include "wire/wire.h"
#include "golden.h"

static void check(int ok, const char *what);

#include "golden_messages.h"

_Static_assert(sizeof(golden_hello) == CFD_HELLO_BYTES, "hello");
_Static_assert(sizeof(golden_welcome) == CFD_WELCOME_BYTES, "welcome");
_Static_assert(sizeof(golden_header) == CFD_MESSAGE_HEADER_BYTES, "header");
_Static_assert((CFD_REQUEST_RING_BYTES & (CFD_REQUEST_RING_BYTES - 1)) == 0, "power of two");
_Static_assert((CFD_ANSWER_RING_BYTES & (CFD_ANSWER_RING_BYTES - 1)) == 0, "power of two");
_Static_assert(CFD_REQUEST_DATA + CFD_REQUEST_RING_BYTES <= CFD_ANSWER_DATA, "rings apart");
_Static_assert(CFD_ANSWER_DATA + CFD_ANSWER_RING_BYTES == CFD_MAPPING_BYTES, "mapping");
_Static_assert(CFD_REQUEST_CONTROL % 64 == 0 && CFD_ANSWER_CONTROL % 64 == 0, "cache lines");
_Static_assert(CFD_ARENA_BASE * 2 == CFD_PARTITION_END, "arenas");

static void
check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "golden: %s differs\n", what);
	exit(1);
}

int
main(void)
{
	CfdHello	hello = {.version = 1, .pid = 4711, .database = 16384, .session = 0x0102030405060708,
	.role = 16385};
	CfdWelcome	welcome;
	CfdHeader	header;
	unsigned char bytes[CFD_HELLO_BYTES];

	memcpy(hello.pass, "0123456789abcdef", 16);
	cfd_encode_hello(bytes, &hello);
	check(memcmp(bytes, golden_hello, sizeof(golden_hello)) == 0, "hello");

	cfd_decode_welcome(&welcome, golden_welcome);
	check(welcome.magic == CFD_HELLO_MAGIC && welcome.version == 1 &&
		  welcome.status == CFD_STATUS_TOO_MANY_CHANNELS &&
		  welcome.arena == CFD_ARENA_BASE + 6 && welcome.session == 9 && welcome.range == 0x0A0B0C0D &&
		  welcome.incarnation == UINT64_C(0xA1B2C3D4E5F60718), "welcome");

	cfd_encode_header(bytes, 40, CFD_KIND_EVAL, 77);
	check(memcmp(bytes, golden_header, sizeof(golden_header)) == 0, "header");
	header = cfd_decode_header(golden_header);
	check(header.length == 40 && header.kind == CFD_KIND_EVAL && header.sequence == 77, "decoded header");

	check(cfd_fid(0x12345, UINT64_C(0x6789abcdef0)) == GOLDEN_FID, "FID");
	check(cfd_fid_partition(GOLDEN_FID) == 0x12345 && cfd_fid_slot(GOLDEN_FID) == UINT64_C(0x6789abcdef0),
		  "fields of a FID");
	check(!cfd_fid_is_temporary(GOLDEN_FID) && cfd_fid_is_temporary(cfd_fid(CFD_ARENA_BASE, 0)),
		  "kind of a FID");
	golden_messages();
	puts("golden: ok");
	return 0;
}
