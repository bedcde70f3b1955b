/*
 * wire.h
 *	  Bytes of the contract's fixed structs: header of a message, hello and
 *	  welcome; field identifiers.
 *
 * Encodes and decodes; does no I/O, checks no content, knows no PostgreSQL, so
 * that test/golden.c can include it alone. Sizes and codes are in contract.h.
 *
 * Invariant: the same content gives the same bytes as crates/contract
 * (test/golden.h).
 */
#ifndef CFD_WIRE_WIRE_H
#define CFD_WIRE_WIRE_H

#include <stdint.h>
#include <string.h>

#ifndef UINT64CONST
#define UINT64CONST(x) UINT64_C(x)
#endif

#include "../generated/contract.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Confide runs on little-endian machines"
#endif

typedef uint64_t CfdFid;

static inline void
cfd_put16(void *at, uint16_t value)
{
	memcpy(at, &value, sizeof(value));
}

static inline void
cfd_put32(void *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

static inline void
cfd_put64(void *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

static inline uint16_t
cfd_get16(const void *at)
{
	uint16_t	value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint32_t
cfd_get32(const void *at)
{
	uint32_t	value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint64_t
cfd_get64(const void *at)
{
	uint64_t	value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline CfdFid
cfd_fid(uint32_t partition, uint64_t slot)
{
	return ((uint64_t) (partition % CFD_PARTITION_END) << CFD_SLOT_BITS) | (slot & CFD_SLOT_MAX);
}

static inline uint32_t
cfd_fid_partition(CfdFid fid)
{
	return (uint32_t) (fid >> CFD_SLOT_BITS);
}

static inline uint64_t
cfd_fid_slot(CfdFid fid)
{
	return fid & CFD_SLOT_MAX;
}

/* Whether a FID names a slot of an arena, not of a column. */
static inline int
cfd_fid_is_temporary(CfdFid fid)
{
	return cfd_fid_partition(fid) >= CFD_ARENA_BASE;
}

typedef struct CfdHeader
{
	uint32_t	length;
	uint16_t	kind;
	uint32_t	sequence;
} CfdHeader;

static inline void
cfd_encode_header(unsigned char *out, uint32_t length, uint16_t kind, uint32_t sequence)
{
	cfd_put32(out, length);
	cfd_put32(out + 4, kind);
	cfd_put32(out + 8, sequence);
	cfd_put32(out + 12, 0);
}

static inline CfdHeader
cfd_decode_header(const unsigned char *in)
{
	CfdHeader	header;

	header.length = cfd_get32(in);
	header.kind = cfd_get16(in + 4);
	header.sequence = cfd_get32(in + 8);
	return header;
}

typedef struct CfdHello
{
	uint32_t	version;
	uint32_t	pid;
	uint32_t	database;
	uint64_t	session;
	unsigned char token[16];
} CfdHello;

static inline void
cfd_encode_hello(unsigned char *out, const CfdHello *hello)
{
	memset(out, 0, CFD_HELLO_BYTES);
	cfd_put32(out, CFD_HELLO_MAGIC);
	cfd_put32(out + 4, hello->version);
	cfd_put32(out + 8, hello->pid);
	cfd_put32(out + 12, hello->database);
	cfd_put64(out + 16, hello->session);
	memcpy(out + 24, hello->token, 16);
}

typedef struct CfdWelcome
{
	uint32_t	magic;
	uint32_t	version;
	uint32_t	status;
	uint32_t	arena;
	uint64_t	session;
	unsigned char token[16];
	uint64_t	incarnation;
} CfdWelcome;

static inline void
cfd_decode_welcome(CfdWelcome *welcome, const unsigned char *in)
{
	welcome->magic = cfd_get32(in);
	welcome->version = cfd_get32(in + 4);
	welcome->status = cfd_get32(in + 8);
	welcome->arena = cfd_get32(in + 12);
	welcome->session = cfd_get64(in + 16);
	memcpy(welcome->token, in + 24, 16);
	welcome->incarnation = cfd_get64(in + 40);
}

#endif
