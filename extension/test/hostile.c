/*
 * hostile.c
 *	  Bodies that a keeper could send, whatever is in them, read under the
 *	  address sanitizer.
 *
 * Mechanism: each decoder of the contract is given random bodies, with small numbers
 * where counts and lengths may be, each in an allocation of exactly its length. Right
 * answer: a body is read or refused. A bug would be a decoder that reads behind
 * the body's end, which the sanitizer reports, or a tail that is not within the body.
 *
 * Arguments: the number of bodies for each decoder, and the seed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "wire/wire.h"

#define LENGTH_MAX 160

static uint64_t state;

static uint32_t
next(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t) (state >> 33) % below;
}

/* A body in memory of its own. */
static char *
body(uint64_t *length)
{
	uint32_t	zeros = next(4);
	char	   *bytes;

	*length = next(LENGTH_MAX);
	bytes = malloc(*length);
	for (uint64_t at = 0; at < *length; at++)
		bytes[at] = next(4) < zeros ? 0 : next(3) > 0 ? (char) next(9) : (char) next(256);
	return bytes;
}

static uint64_t taken;

#define HOSTILE(decode, type) \
	for (long round = 0; round < rounds; round++) \
	{ \
		uint64_t	length; \
		char	   *bytes = body(&length); \
		type		read; \
		\
		taken += decode(bytes, length, &read); \
		free(bytes); \
	}

static void
all(long rounds)
{
#include "hostile.h"
}

int
main(int argc, char **argv)
{
	long		rounds = argc > 1 ? atol(argv[1]) : 1000;

	state = argc > 2 ? (uint64_t) atol(argv[2]) : 1;
	all(rounds);
	if (taken == 0)
	{
		fputs("hostile: nothing was ever read\n", stderr);
		return 1;
	}
	printf("hostile: ok, %llu bodies were read\n", (unsigned long long) taken);
	return 0;
}
