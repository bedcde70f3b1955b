/*
 * order.c
 *	  Comparison of order-revealing encodings: the block scheme of Lewi and
 *	  Wu (CCS 2016), as produced by crates/encodings/src/ore.rs.
 *
 * The hash that hides the entries of a right half is AES-128 under a public
 * key, computed for all digits in one call. Nothing here is secret, so nothing
 * needs to run in constant time.
 *
 * Invariant: agrees with the crate (tests/families/test_soft.py compares the
 * orders of many values).
 */
#include "postgres.h"

#include "soft/aes.h"
#include "soft/soft.h"

/* Maximum number of digits of any type in the family. */
#define DIGITS_MAX 16

static uint64
little_endian(const unsigned char *bytes)
{
	uint64		number = 0;

	for (int i = 7; i >= 0; i--)
		number = number << 8 | bytes[i];
	return number;
}

/* The mask (0, 1 or 2) derived from a block and its encryption. */
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
		/* XOR of a digit's key and the nonce. */
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
