/*
 * aes.c
 *	  AES-128 (FIPS 197) under the key of aes.h: see there.
 *
 * The tables are computed at the first use.
 *
 * Invariant: with the processor's instructions and without them the result is the same.
 */
#include <stdbool.h>
#include <string.h>

#include "soft/aes.h"
#include "wire/wire.h"

#define ROUNDS 10

static unsigned char substitution[256];
static unsigned char round_keys[ROUNDS + 1][CFD_AES_BYTES];
static bool ready = false;

/* Twice a number of the field of 256. */
static unsigned char
twice(unsigned char x)
{
	return (unsigned char) (x << 1 ^ (x & 0x80 ? 0x1b : 0));
}

static unsigned char
rotated(unsigned char x, int by)
{
	return (unsigned char) (x << by | x >> (8 - by));
}

/* Goes through all numbers but 0 as powers of 3, and through their inverses beside them. */
static void
make_substitution(void)
{
	unsigned char power = 1;
	unsigned char inverse = 1;

	do
	{
		power ^= twice(power);
		/* A third: times 0xf6. */
		inverse ^= (unsigned char) (inverse << 1);
		inverse ^= (unsigned char) (inverse << 2);
		inverse ^= (unsigned char) (inverse << 4);
		if (inverse & 0x80)
			inverse ^= 0x09;
		substitution[power] = inverse ^ rotated(inverse, 1) ^ rotated(inverse, 2) ^
			rotated(inverse, 3) ^ rotated(inverse, 4) ^ 0x63;
	} while (power != 1);
	substitution[0] = 0x63;
}

static void
make_tables(void)
{
	static const unsigned char key[CFD_AES_BYTES] = CFD_SOFT_ORDER_HASH_KEY;
	unsigned char constant = 1;

	make_substitution();
	memcpy(round_keys[0], key, sizeof(key));
	for (int round = 1; round <= ROUNDS; round++)
	{
		const unsigned char *before = round_keys[round - 1];
		unsigned char *after = round_keys[round];

		for (int i = 0; i < 4; i++)
			after[i] = before[i] ^ substitution[before[12 + (i + 1) % 4]];
		after[0] ^= constant;
		for (int i = 4; i < CFD_AES_BYTES; i++)
			after[i] = before[i] ^ after[i - 4];
		constant = twice(constant);
	}
	ready = true;
}

static void
add_key(unsigned char *state, int round)
{
	for (int i = 0; i < CFD_AES_BYTES; i++)
		state[i] ^= round_keys[round][i];
}

/* SubBytes and ShiftRows. */
static void
substitute(unsigned char *state)
{
	unsigned char old[CFD_AES_BYTES];

	memcpy(old, state, sizeof(old));
	for (int column = 0; column < 4; column++)
	{
		for (int row = 0; row < 4; row++)
			state[4 * column + row] = substitution[old[4 * ((column + row) % 4) + row]];
	}
}

static void
mix(unsigned char *state)
{
	for (unsigned char *c = state; c < state + CFD_AES_BYTES; c += 4)
	{
		unsigned char first = c[0];
		unsigned char all = c[0] ^ c[1] ^ c[2] ^ c[3];

		c[0] ^= all ^ twice(c[0] ^ c[1]);
		c[1] ^= all ^ twice(c[1] ^ c[2]);
		c[2] ^= all ^ twice(c[2] ^ c[3]);
		c[3] ^= all ^ twice(c[3] ^ first);
	}
}

static void
in_plain_c(unsigned char *out, const unsigned char *in)
{
	unsigned char state[CFD_AES_BYTES];

	memcpy(state, in, sizeof(state));
	add_key(state, 0);
	for (int round = 1; round < ROUNDS; round++)
	{
		substitute(state);
		mix(state);
		add_key(state, round);
	}
	substitute(state);
	add_key(state, ROUNDS);
	memcpy(out, state, sizeof(state));
}

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("aes,sse2")))
static void
by_instructions(unsigned char *out, const unsigned char *in)
{
	__m128i		state = _mm_loadu_si128((const __m128i *) in);

	state = _mm_xor_si128(state, _mm_loadu_si128((const __m128i *) round_keys[0]));
	for (int round = 1; round < ROUNDS; round++)
		state = _mm_aesenc_si128(state, _mm_loadu_si128((const __m128i *) round_keys[round]));
	state = _mm_aesenclast_si128(state, _mm_loadu_si128((const __m128i *) round_keys[ROUNDS]));
	_mm_storeu_si128((__m128i *) out, state);
}
#endif

void
cfd_aes_order(unsigned char out[CFD_AES_BYTES], const unsigned char in[CFD_AES_BYTES])
{
	if (!ready)
		make_tables();
#if defined(__x86_64__)
	if (__builtin_cpu_supports("aes"))
	{
		by_instructions(out, in);
		return;
	}
#endif
	in_plain_c(out, in);
}
