/*
 * base64.c
 *	  Unpadded URL-safe base64; see base64.h.
 *
 * Invariant: unused bits of the last character are zero.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "value/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static signed char values[256];
static bool values_made = false;

static void
make_values(void)
{
	memset(values, -1, sizeof(values));
	for (int i = 0; i < 64; i++)
		values[(unsigned char) alphabet[i]] = i;
	values_made = true;
}

void
cfd_base64_encode(char *out, const unsigned char *in, size_t bytes)
{
	for (; bytes >= 3; bytes -= 3, in += 3)
	{
		uint32		word = in[0] << 16 | in[1] << 8 | in[2];

		*out++ = alphabet[word >> 18];
		*out++ = alphabet[word >> 12 & 63];
		*out++ = alphabet[word >> 6 & 63];
		*out++ = alphabet[word & 63];
	}
	if (bytes > 0)
	{
		uint32		word = in[0] << 16 | (bytes > 1 ? in[1] << 8 : 0);

		*out++ = alphabet[word >> 18];
		*out++ = alphabet[word >> 12 & 63];
		if (bytes > 1)
			*out++ = alphabet[word >> 6 & 63];
	}
}

/*
 * Decodes "count" characters into the high bits of a 24-bit group. Returns -1
 * if one is not in the alphabet.
 */
static int32
decode_group(const char *in, int count)
{
	int32		word = 0;

	for (int i = 0; i < 4; i++)
	{
		int			value = i < count ? values[(unsigned char) in[i]] : 0;

		if (value < 0)
			return -1;
		word = word << 6 | value;
	}
	return word;
}

bool
cfd_base64_decode(unsigned char *out, const char *in, size_t length)
{
	int32		word;

	if (!values_made)
		make_values();
	for (; length >= 4; length -= 4, in += 4)
	{
		word = decode_group(in, 4);
		if (word < 0)
			return false;
		*out++ = word >> 16;
		*out++ = word >> 8;
		*out++ = word;
	}
	if (length == 0)
		return true;
	word = decode_group(in, length);
	if (length == 1 || word < 0 || (word & (length == 2 ? 0xFFFF : 0xFF)) != 0)
		return false;
	*out++ = word >> 16;
	if (length == 3)
		*out++ = word >> 8;
	return true;
}

struct varlena *
cfd_base64_varlena(const char *text)
{
	size_t		length = strlen(text);
	size_t		bytes = CFD_BASE64_BYTES(length);
	struct varlena *made = palloc(VARHDRSZ + bytes);

	SET_VARSIZE(made, VARHDRSZ + bytes);
	return cfd_base64_decode((unsigned char *) VARDATA(made), text, length) ? made : NULL;
}
