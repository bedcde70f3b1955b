/*
 * order.c
 *	  Comparison of order-revealing encodings: the block scheme of Lewi and
 *	  Wu (CCS 2016), as produced by crates/encodings/src/ore.rs.
 *
 * A cell has both halves. Left halves say without a hash how far two values
 * agree: the part of a digit is a function of the digits up to it. Only the
 * entry of the first digit that differs is opened, which is AES-128 of one
 * block under a public key. Nothing here is secret, so nothing needs to run in
 * constant time.
 *
 * Invariant: agrees with the crate (tests/families/test_soft.py compares the
 * orders of many values).
 */
#include "postgres.h"

#include "port/pg_bswap.h"
#include "soft/aes.h"
#include "soft/soft.h"

static uint64
little_endian(const unsigned char *bytes)
{
	uint64		number;

	memcpy(&number, bytes, sizeof(number));
#ifdef WORDS_BIGENDIAN
	number = pg_bswap64(number);
#endif
	return number;
}

/* The mask (0, 1 or 2) derived from a block and its encryption. */
static unsigned
hidden_by(const unsigned char *input, const unsigned char *output)
{
	return ((little_endian(output) ^ little_endian(input)) % 3 +
			(little_endian(output + 8) ^ little_endian(input + 8)) % 3) % 3;
}

/* The first digit in which two left halves differ, or their length. */
static int
first_difference(const unsigned char *a, const unsigned char *b, int digits)
{
	int			digit = 0;

	while (digit < digits && memcmp(a, b, CFD_SOFT_LEFT_BYTES) == 0)
	{
		a += CFD_SOFT_LEFT_BYTES;
		b += CFD_SOFT_LEFT_BYTES;
		digit++;
	}
	return digit;
}

int
cfd_soft_digit_order(const CfdSoft *a, const CfdSoft *b)
{
	int			digit = first_difference(a->left, b->left, a->digits);
	const unsigned char *key = a->left + digit * CFD_SOFT_LEFT_BYTES;
	const unsigned char *entries = b->right + CFD_SOFT_NONCE_BYTES + digit * CFD_SOFT_RIGHT_BYTES;
	unsigned char input[CFD_AES_BYTES];
	unsigned char output[CFD_AES_BYTES];
	unsigned	place;
	unsigned	hidden;

	if (digit == a->digits)
		return -1;
	/* XOR of the digit's key and the nonce, word by word. */
	for (int at = 0; at < CFD_AES_BYTES; at += sizeof(uint64))
	{
		uint64		word;
		uint64		nonce;

		memcpy(&word, key + at, sizeof(word));
		memcpy(&nonce, b->right + at, sizeof(nonce));
		word ^= nonce;
		memcpy(input + at, &word, sizeof(word));
	}
	cfd_aes_order(output, input);
	place = key[CFD_AES_BYTES] & 15;
	hidden = entries[place / 4] >> (2 * (place % 4)) & 3;
	return (hidden + 3 - hidden_by(input, output)) % 3;
}

int
cfd_soft_order(const CfdSoft *a, const CfdSoft *b)
{
	switch (cfd_soft_digit_order(a, b))
	{
		case -1:
			return 0;
		case 1:
			return -1;
		case 2:
			return 1;
		default:
			/* The halves of an encoding do not belong together. */
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("malformed order of a cell of the family soft_")));
	}
	return 0;
}
