/*
 * wire.h
 *	  The bytes exchanged by backend and keeper: FIDs, message headers,
 *	  hello and welcome, and the building blocks of message bodies.
 *
 * The bodies themselves are generated from crates/contract: messages.h has a
 * struct CfdWire... with the fields of each one, which is filled in and sent
 * unchanged, and decoders.h has a checked decoder cfd_decode_... for each.
 * This file has what they are built from: a reader, and the columns of
 * batches. It does no I/O and does not depend on PostgreSQL, so that
 * test/golden.c can include it alone.
 *
 * Invariants: equal contents yield the same bytes as in crates/contract
 * (test/golden.h, golden_messages.h); a decoder accepts only a complete
 * message, whatever the bytes.
 */
#ifndef CFD_WIRE_WIRE_H
#define CFD_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
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

/* Whether a FID names a slot of an arena rather than of a column. */
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
	unsigned char pass[16];
	uint32_t	role;
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
	memcpy(out + 24, hello->pass, 16);
	cfd_put32(out + 40, hello->role);
}

typedef struct CfdWelcome
{
	uint32_t	magic;
	uint32_t	version;
	uint32_t	status;
	uint32_t	arena;
	uint64_t	session;
	uint32_t	range;
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
	welcome->range = cfd_get32(in + 24);
	welcome->incarnation = cfd_get64(in + 40);
}

/* ---------- bodies ---------- */

/* A struct inside a message, possibly unaligned. */
#define CFD_IN_MESSAGE __attribute__((packed, may_alias))

/* Integers inside a message. */
typedef uint16_t CfdWireU16 __attribute__((aligned(1), may_alias));
typedef uint32_t CfdWireU32 __attribute__((aligned(1), may_alias));
typedef uint64_t CfdWireU64 __attribute__((aligned(1), may_alias));
typedef int32_t CfdWireI32 __attribute__((aligned(1), may_alias));
typedef int64_t CfdWireI64 __attribute__((aligned(1), may_alias));
typedef CfdFid CfdWireFid __attribute__((aligned(1), may_alias));

#include "../generated/messages.h"

/* The rest of a message. */
typedef struct CfdReader
{
	const char *at;
	const char *end;
} CfdReader;

/* Stands for a number of elements: everything that is left. */
#define CFD_TO_END UINT64_MAX

static inline CfdReader
cfd_reader(const void *bytes, uint64_t length)
{
	const char *start = bytes != NULL ? (const char *) bytes : "";

	return (CfdReader) {start, start + length};
}

/* Takes elements of the given size. Returns their position and number. */
static inline bool
cfd_take_list(CfdReader *from, uint64_t count, uint64_t size, const void **out, uint64_t *out_count)
{
	uint64_t	left = (uint64_t) (from->end - from->at);

	if (count == CFD_TO_END)
	{
		if (left % size != 0)
			return false;
		count = left / size;
	}
	else if (count > left / size)
		return false;
	*out = from->at;
	*out_count = count;
	from->at += count * size;
	return true;
}

/* Takes fixed-size fields. */
static inline bool
cfd_take_head(CfdReader *from, void *out, uint64_t size)
{
	if (size > (uint64_t) (from->end - from->at))
		return false;
	memcpy(out, from->at, size);
	from->at += size;
	return true;
}

/* Takes a zero-terminated text. */
static inline bool
cfd_take_text(CfdReader *from, const char **out)
{
	const char *zero = memchr(from->at, 0, (size_t) (from->end - from->at));

	if (zero == NULL)
		return false;
	*out = from->at;
	from->at = zero + 1;
	return true;
}

/* A column of a batch or an answer, in one of these forms. */
typedef struct CfdReadColumn
{
	CfdWireColumnHead head;
	const void *values;			/* FIDs, runs, booleans, numbers or lengths */
	const uint8_t *nulls;		/* of numbers: nulls[i] is 1 for NULL */
	const uint8_t *cells;		/* of cells: their bytes; `values` has the lengths */
} CfdReadColumn;

/* Takes the bytes of cells, whose lengths have been read. */
static inline bool
cfd_take_cells(CfdReader *from, CfdReadColumn *out)
{
	const CfdWireU32 *lengths = (const CfdWireU32 *) out->values;
	uint64_t	bytes = 0;
	uint64_t	count;

	for (uint32_t i = 0; i < out->head.count; i++)
		bytes += lengths[i];
	return cfd_take_list(from, bytes, 1, (const void **) &out->cells, &count);
}

static inline bool
cfd_read_column(CfdReader *from, uint64_t rows, CfdReadColumn *out)
{
	uint64_t	count;
	uint64_t	size;

	if (!cfd_take_head(from, &out->head, sizeof(out->head)))
		return false;
	/*
	 * A list for all rows has its own length; there are at most as many runs
	 * as rows.
	 */
	if (out->head.form == CFD_COLUMN_VALUES)
		rows = out->head.count <= CFD_ROWS_MAX ? out->head.count : 0;
	if (out->head.count > rows || (out->head.form != CFD_COLUMN_RUNS && out->head.count != rows))
		return false;
	out->nulls = NULL;
	out->cells = NULL;
	switch (out->head.form)
	{
		case CFD_COLUMN_LIST:
		case CFD_COLUMN_RAW:
		case CFD_COLUMN_VALUES:
			size = sizeof(uint64_t);
			break;
		case CFD_COLUMN_RUNS:
			size = sizeof(CfdWireColumnRun);
			break;
		case CFD_COLUMN_BOOLS:
			size = 1;
			break;
		case CFD_COLUMN_CELLS:
			size = sizeof(uint32_t);
			break;
		default:
			return false;
	}
	return cfd_take_list(from, out->head.count, size, &out->values, &count) &&
		(out->head.form != CFD_COLUMN_RAW ||
		 cfd_take_list(from, out->head.count, 1, (const void **) &out->nulls, &count)) &&
		(out->head.form != CFD_COLUMN_CELLS || cfd_take_cells(from, out));
}

/* Validates columns, and returns a reader with which they can be read one by one. */
static inline bool
cfd_take_columns(CfdReader *from, uint64_t rows, uint64_t count, CfdReader *out)
{
	CfdReadColumn column;

	out->at = from->at;
	for (uint64_t i = 0; count == CFD_TO_END ? from->at < from->end : i < count; i++)
	{
		if (!cfd_read_column(from, rows, &column))
			return false;
	}
	out->end = from->at;
	return true;
}

#include "../generated/decoders.h"

#endif
