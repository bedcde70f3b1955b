/*
 * aes.c
 *	  AES-128 under the key of aes.h, using libcrypto, which PostgreSQL
 *	  itself is linked with.
 *
 * Encrypting many blocks takes little longer than encrypting one, because most
 * of a call is overhead of the library.
 *
 * Invariant: the key is public, so nothing that is kept here is secret.
 */
#include "postgres.h"

#include <openssl/evp.h>

#include "soft/aes.h"
#include "wire/wire.h"

#ifndef USE_OPENSSL
#error "Confide needs a PostgreSQL that was built with OpenSSL."
#endif

/* Created at first use and kept for the life of the process. */
static EVP_CIPHER_CTX *cipher = NULL;

static void fail_cipher(void) pg_attribute_noreturn();

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
	static const unsigned char key[CFD_AES_BYTES] = CFD_SOFT_ORDER_HASH_KEY;
	EVP_CIPHER_CTX *made = EVP_CIPHER_CTX_new();

	if (made == NULL || EVP_EncryptInit_ex(made, EVP_aes_128_ecb(), NULL, key, NULL) != 1 ||
		EVP_CIPHER_CTX_set_padding(made, 0) != 1)
	{
		EVP_CIPHER_CTX_free(made);
		fail_cipher();
	}
	cipher = made;
}

void
cfd_aes_order(unsigned char *out, const unsigned char *in, int blocks)
{
	int			written = 0;

	if (cipher == NULL)
		make_cipher();
	if (EVP_EncryptUpdate(cipher, out, &written, in, blocks * CFD_AES_BYTES) != 1 ||
		written != blocks * CFD_AES_BYTES)
		fail_cipher();
}
