/*
 * order.c
 *	  Compares order-revealing encodings: the block scheme of Lewi and Wu (CCS 2016), as
 *	  crates/encodings/src/ore.rs makes them.
 *
 * The hash that hides entries of a right half is AES-128 under a key that everybody knows,
 * of all digits in one call. Nothing is secret, so nothing takes a constant time.
 *
 * Invariant: agrees with the crate (tests/families/test_soft.py compares orders of many values).
 */
#include "postgres.h"

#include "soft/aes.h"
#include "soft/soft.h"

/* Of any type of the family. */
#define DIGITS_MAX 16

static uint64
little_endian(const unsigned char *bytes)
{
	uint64		number = 0;

	for (int i = 7; i >= 0; i--)
		number = number << 8 | bytes[i];
	return number;
}

/* 0, 1 or 2 from a block and what it is encrypted to. */
static unsigned
hidden_by(const unsigned char *input, const unsigned char *output)
{
	return ((little_endian(output) ^ little_endian(input)) % 3 +
			(little_endian(output + 8) ^ little_endian(input + 8)) % 3) % 3;
}

int
cfd_soft_order(const unsigned char *left, const unsigned char *right, int digits)
{
	const unsigned char *nonce = right;
	const unsigned char *entries = right + CFD_SOFT_NONCE_BYTES;
	unsigned char inputs[DIGITS_MAX * CFD_AES_BYTES] = {0};
	unsigned char outputs[DIGITS_MAX * CFD_AES_BYTES];

	Assert(digits <= DIGITS_MAX);
	for (int i = 0; i < digits; i++)
	{
		/* A place's key, and the nonce. */
		for (int byte = 0; byte < CFD_AES_BYTES; byte++)
			inputs[i * CFD_AES_BYTES + byte] = left[i * CFD_SOFT_LEFT_BYTES + byte] ^ nonce[byte];
	}
	cfd_aes_order(outputs, inputs, digits);
	for (int i = 0; i < digits; i++)
	{
		unsigned	place = left[CFD_AES_BYTES] & 15;
		unsigned	hidden = entries[place / 4] >> (2 * (place % 4)) & 3;

		switch ((hidden + 3 - hidden_by(inputs + i * CFD_AES_BYTES, outputs + i * CFD_AES_BYTES)) % 3)
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
