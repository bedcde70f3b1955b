/*
 * base64.h
 *	  Unpadded URL-safe base64, the text form of envelopes.
 *
 * Invariant: decodes exactly the texts that the encoder produces.
 */
#ifndef CFD_VALUE_BASE64_H
#define CFD_VALUE_BASE64_H

#include "postgres.h"

#define CFD_BASE64_LENGTH(bytes) (((bytes) * 4 + 2) / 3)
#define CFD_BASE64_BYTES(length) ((length) * 3 / 4)

extern void cfd_base64_encode(char *out, const unsigned char *in, size_t bytes);
/* Returns false if the text is not canonical. */
extern bool cfd_base64_decode(unsigned char *out, const char *in, size_t length);
/* Decodes into a palloc'd bytea. Returns NULL if the text is not canonical. */
extern struct varlena *cfd_base64_varlena(const char *text);

#endif
