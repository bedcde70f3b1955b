/*
 * aes.h
 *	  AES-128 under the one key that hides order-revealing encodings: a permutation that
 *	  everybody can compute.
 *
 * Invariant: used with this key only, which is no secret.
 */
#ifndef CFD_SOFT_AES_H
#define CFD_SOFT_AES_H

#define CFD_AES_BYTES 16

/* Each block by itself; both have room for all of them. */
extern void cfd_aes_order(unsigned char *out, const unsigned char *in, int blocks);

#endif
