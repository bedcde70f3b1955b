/*
 * programs.c
 *	  Programs that are registered with the keeper, for as long as the session: see
 *	  compile.h.
 *
 * A program's bytes do not depend on constants, so a query that comes again finds
 * its program. When there are too many, all are forgotten, and whoever still uses
 * one registers it again: the epoch tells.
 *
 * Invariant: a handle is used only in the epoch and with the connection that
 * it is from.
 */
#include "postgres.h"

#include "session/channel.h"
#include "common/hashfn.h"
#include "program/compile.h"
#include "utils/memutils.h"

#define PROGRAMS_MAX 256

typedef struct Registered
{
	uint32		hash;
	uint32		handle;
	int			length;
	unsigned char *bytes;
} Registered;

static Registered programs[PROGRAMS_MAX];
static int	count = 0;
static uint32 generation = 0;
static uint64 epoch = 1;

static void
forget_all(bool tell)
{
	for (int i = 0; i < count; i++)
	{
		unsigned char body[CFD_FIXED_PROGRAM_FORGET] = {0};

		pfree(programs[i].bytes);
		cfd_put32(body, programs[i].handle);
		if (tell)
			cfd_send(CFD_KIND_PROGRAM_FORGET, body, sizeof(body), NULL, 0);
	}
	count = 0;
	epoch++;
}

static unsigned char *
bytes_of(const CfdProgram *program, int *length)
{
	const CfdCompiler *compiler = program->compiler;
	unsigned char *bytes;

	*length = 8 + compiler->count + program->instructions * 8;
	bytes = palloc0(*length);
	cfd_put16(bytes, compiler->count);
	cfd_put16(bytes + 4, program->instructions);
	for (int i = 0; i < compiler->count; i++)
		bytes[8 + i] = compiler->inputs[i].type;
	memcpy(bytes + 8 + compiler->count, program->code, program->instructions * 8);
	return bytes;
}

static uint32
find_or_register(const unsigned char *bytes, int length)
{
	uint32		hash = hash_bytes(bytes, length);
	const char *answer;
	uint32		answer_length;
	unsigned char *copy;

	for (int i = 0; i < count; i++)
	{
		if (programs[i].hash == hash && programs[i].length == length &&
			memcmp(programs[i].bytes, bytes, length) == 0)
			return programs[i].handle;
	}
	if (count == PROGRAMS_MAX)
		forget_all(true);
	copy = MemoryContextAlloc(TopMemoryContext, length);
	memcpy(copy, bytes, length);
	PG_TRY();
	{
		answer = cfd_call(CFD_KIND_PROGRAM_REGISTER, NULL, 0, bytes, length, &answer_length);
		if (answer_length != sizeof(uint32))
			cfd_violation("handle of a program has the wrong length");
	}
	PG_CATCH();
	{
		pfree(copy);
		PG_RE_THROW();
	}
	PG_END_TRY();
	programs[count] = (Registered) {.hash = hash,.handle = cfd_get32(answer),.length = length,.bytes = copy};
	return programs[count++].handle;
}

uint32
cfd_program_handle(CfdProgram *program)
{
	unsigned char *bytes;
	int			length;

	cfd_begin();
	if (generation != cfd_channel.generation)
	{
		forget_all(false);
		generation = cfd_channel.generation;
	}
	if (program->epoch == epoch)
		return program->handle;
	bytes = bytes_of(program, &length);
	program->handle = find_or_register(bytes, length);
	program->epoch = epoch;
	pfree(bytes);
	return program->handle;
}
