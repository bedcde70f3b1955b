/*
 * costs.c
 *	  Measures what an operation on encodings costs; see switch.h.
 *
 * Measured once in a session, at first use, with cells of its own, whose
 * contents do not matter.
 *
 * Invariant: takes less than a millisecond, and reads no table.
 */
#include "postgres.h"

#include "portability/instr_time.h"
#include "soft/soft.h"
#include "switch/switch.h"

#define ROUNDS 512
#define SEALED_BYTES 20

typedef struct Sample
{
	unsigned char bytes[512];
	Size		length;
} Sample;

static CfdSoftCosts costs;
static bool measured = false;

/* An int4 with all encodings. Two samples differ in their second digit. */
static void
fill(Sample *sample, int number)
{
	const int	digits = cfd_soft_digits(CFD_TYPE_INT4, 0);
	const uint32 sealed = SEALED_BYTES;
	const uint32 key = 1;
	unsigned char *at = sample->bytes;

	memset(sample, 0x55, sizeof(*sample));
	at[0] = CFD_SOFT_VALUE;
	at[1] = CFD_TYPE_INT4;
	at[2] = CFD_SOFT_EQ | CFD_SOFT_ORD | CFD_SOFT_ADD;
	at[3] = 0;
	memcpy(at + 4, &key, sizeof(key));
	at += CFD_SOFT_HEADER_BYTES;
	memcpy(at, &sealed, sizeof(sealed));
	at += CFD_SOFT_LENGTH_BYTES;
	at[SEALED_BYTES - 1] = number;
	at += SEALED_BYTES;
	at[CFD_SOFT_LEFT_BYTES] = number;
	at += digits * CFD_SOFT_LEFT_BYTES + CFD_SOFT_NONCE_BYTES + digits * CFD_SOFT_RIGHT_BYTES;
	sample->length = at + CFD_SOFT_ADD_BYTES - sample->bytes;
}

static double
cfd_costs_since(instr_time start)
{
	instr_time	end;

	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	return INSTR_TIME_GET_DOUBLE(end) * 1e9;
}

static bool
read_both(const Sample *samples, CfdSoft *a, CfdSoft *b)
{
	return cfd_soft_read(a, samples[0].bytes, samples[0].length) &&
		cfd_soft_read(b, samples[1].bytes, samples[1].length);
}

/* Each round reads both cells, as an operator does. */
static void
cfd_costs_measure(const Sample *samples)
{
	volatile int results = 0;
	CfdSoft		a;
	CfdSoft		b;
	instr_time	start;
	uint128 sum = 0;

	INSTR_TIME_SET_CURRENT(start);
	for (int i = 0; i < ROUNDS; i++)
		results += read_both(samples, &a, &b) ? cfd_soft_digit_order(&a, &b) : 0;
	costs.order = cfd_costs_since(start) / ROUNDS;
	INSTR_TIME_SET_CURRENT(start);
	for (int i = 0; i < ROUNDS; i++)
		results += read_both(samples, &a, &b) && memcmp(a.sealed, b.sealed, a.sealed_length) == 0;
	costs.equality = cfd_costs_since(start) / ROUNDS;
	INSTR_TIME_SET_CURRENT(start);
	for (int i = 0; i < ROUNDS; i++)
	{
		uint128 masked;

		if (!cfd_soft_read(&a, samples[0].bytes, samples[0].length))
			continue;
		memcpy(&masked, a.add + sizeof(uint64), sizeof(masked));
		sum += masked;
	}
	results += (int) sum;
	costs.addition = cfd_costs_since(start) / ROUNDS;
	costs.clock = 0;
	for (int i = 0; i < ROUNDS; i++)
	{
		INSTR_TIME_SET_CURRENT(start);
		costs.clock += cfd_costs_since(start) / ROUNDS;
	}
}

const CfdSoftCosts *
cfd_soft_costs(void)
{
	Sample		samples[2];

	if (measured)
		return &costs;
	for (int i = 0; i < 2; i++)
		fill(&samples[i], i);
	/* The first time, caches are cold. */
	cfd_costs_measure(samples);
	cfd_costs_measure(samples);
	measured = true;
	return &costs;
}
