/*
 * aes.h
 *	  AES-128 under the fixed key that hides entries of order-revealing
 *	  encodings: a permutation that everybody can compute.
 *
 * Invariant: used with this key only, which is not secret.
 */
#ifndef CFD_SOFT_AES_H
#define CFD_SOFT_AES_H

#define CFD_AES_BYTES 16

/* Encrypts one block. */
extern void cfd_aes_order(unsigned char *out, const unsigned char *in);

#endif
