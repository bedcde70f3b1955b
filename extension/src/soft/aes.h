/*
 * aes.h
 *	  AES-128 under the one key that hides order-revealing encodings: a permutation that
 *	  everybody can compute.
 *
 * Not for secrets: its tables tell by their timing what is encrypted.
 *
 * Invariant: includes nothing of PostgreSQL, so that it can be tried by itself.
 */
#ifndef CFD_SOFT_AES_H
#define CFD_SOFT_AES_H

#define CFD_AES_BYTES 16

extern void cfd_aes_order(unsigned char out[CFD_AES_BYTES], const unsigned char in[CFD_AES_BYTES]);

#endif
