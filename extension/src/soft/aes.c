/*
 * aes.c
 *	  AES-128 under the key of aes.h: by the processor's instructions where it
 *	  has them, else by libcrypto, which PostgreSQL itself is linked with.
 *
 * A comparison encrypts one block. A call of the library takes several times
 * as long as the block, hence the instructions.
 *
 * Invariant: the key is public, so nothing that is kept here is secret, and
 * nothing needs to run in constant time.
 */
#include "postgres.h"

#include <openssl/evp.h>

#include "compat/compat.h"
#include "soft/aes.h"
#include "wire/wire.h"

#ifndef USE_OPENSSL
#error "Confide needs a PostgreSQL that was built with OpenSSL."
#endif

static const unsigned char order_key[CFD_AES_BYTES] = CFD_SOFT_ORDER_HASH_KEY;

/* ---------- libcrypto ---------- */

/* Created at first use and kept for the life of the process. */
static EVP_CIPHER_CTX *cipher = NULL;

pg_noreturn static void fail_cipher(void);

static void
fail_cipher(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("could not compare encoded values"),
			 errdetail("libcrypto does not give AES-128.")));
}

static void
make_cipher(void)
{
	EVP_CIPHER_CTX *made = EVP_CIPHER_CTX_new();

	if (made == NULL || EVP_EncryptInit_ex(made, EVP_aes_128_ecb(), NULL, order_key, NULL) != 1 ||
		EVP_CIPHER_CTX_set_padding(made, 0) != 1)
	{
		EVP_CIPHER_CTX_free(made);
		fail_cipher();
	}
	cipher = made;
}

static void
by_library(unsigned char *out, const unsigned char *in)
{
	int			written = 0;

	if (cipher == NULL)
		make_cipher();
	if (EVP_EncryptUpdate(cipher, out, &written, in, CFD_AES_BYTES) != 1 || written != CFD_AES_BYTES)
		fail_cipher();
}

/* ---------- instructions ---------- */

#if defined(__x86_64__) && defined(__GNUC__)

#include <wmmintrin.h>

#define ROUNDS 10
#define WITH_AES __attribute__((target("aes,sse2")))

static __m128i round_keys[ROUNDS + 1];

/* The next round key (FIPS 197, section 5.2); `helped` has the word that is rotated and substituted. */
static WITH_AES __m128i
next_key(__m128i key, __m128i helped)
{
	key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
	key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
	return _mm_xor_si128(key, _mm_shuffle_epi32(helped, 0xff));
}

static WITH_AES void
expand_key(void)
{
	__m128i    *keys = round_keys;

	keys[0] = _mm_loadu_si128((const __m128i *) order_key);
/* The round constant must be known to the compiler. */
#define EXPAND(i, constant) keys[i] = next_key(keys[(i) - 1], _mm_aeskeygenassist_si128(keys[(i) - 1], constant))
	EXPAND(1, 0x01);
	EXPAND(2, 0x02);
	EXPAND(3, 0x04);
	EXPAND(4, 0x08);
	EXPAND(5, 0x10);
	EXPAND(6, 0x20);
	EXPAND(7, 0x40);
	EXPAND(8, 0x80);
	EXPAND(9, 0x1b);
	EXPAND(10, 0x36);
#undef EXPAND
}

static WITH_AES void
by_instructions(unsigned char *out, const unsigned char *in)
{
	__m128i		block = _mm_xor_si128(_mm_loadu_si128((const __m128i *) in), round_keys[0]);

	for (int i = 1; i < ROUNDS; i++)
		block = _mm_aesenc_si128(block, round_keys[i]);
	_mm_storeu_si128((__m128i *) out, _mm_aesenclast_si128(block, round_keys[ROUNDS]));
}

/* Whether the processor has the instructions; prepares them. */
static bool
have_instructions(void)
{
	static int	have = -1;

	if (have < 0)
	{
		have = __builtin_cpu_supports("aes") != 0;
		if (have)
			expand_key();
	}
	return have != 0;
}

#endif

void
cfd_aes_order(unsigned char *out, const unsigned char *in)
{
#ifdef WITH_AES
	if (have_instructions())
	{
		by_instructions(out, in);
		return;
	}
#endif
	by_library(out, in);
}
