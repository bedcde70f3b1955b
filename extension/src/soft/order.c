/*
 * order.c
 *	  Compares order-revealing encodings: the block scheme of Lewi and Wu (CCS 2016), as
 *	  crates/encodings/src/ore.rs makes them.
 *
 * The hash that hides entries of a right half is AES-128 under a key that everybody knows.
 * It is here, by the processor's instructions or in plain C, so that comparing needs no
 * library. Nothing is secret, so nothing takes a constant time.
 *
 * Invariant: agrees with the crate (tests/families/test_soft.py compares orders of many values).
 */
#include "postgres.h"

#include "soft/aes.h"
#include "soft/soft.h"

static uint64
little_endian(const unsigned char *bytes)
{
	uint64		number = 0;

	for (int i = 7; i >= 0; i--)
		number = number << 8 | bytes[i];
	return number;
}

/* 0, 1 or 2 from a place's key and a nonce. */
static unsigned
hidden_by(const unsigned char *key, const unsigned char *nonce)
{
	unsigned char input[CFD_AES_BYTES];
	unsigned char output[CFD_AES_BYTES];

	for (int i = 0; i < CFD_AES_BYTES; i++)
		input[i] = key[i] ^ nonce[i];
	cfd_aes_order(output, input);
	for (int i = 0; i < CFD_AES_BYTES; i++)
		output[i] ^= input[i];
	return (little_endian(output) % 3 + little_endian(output + 8) % 3) % 3;
}

int
cfd_soft_order(const unsigned char *left, const unsigned char *right, int digits)
{
	const unsigned char *nonce = right;
	const unsigned char *entries = right + CFD_SOFT_NONCE_BYTES;

	for (int i = 0; i < digits; i++)
	{
		unsigned	place = left[CFD_AES_BYTES] & 15;
		unsigned	hidden = entries[place / 4] >> (2 * (place % 4)) & 3;

		switch ((hidden + 3 - hidden_by(left, nonce)) % 3)
		{
			case 0:
				break;
			case 1:
				return -1;
			default:
				return 1;
		}
		left += CFD_SOFT_LEFT_BYTES;
		entries += CFD_SOFT_RIGHT_BYTES;
	}
	return 0;
}
