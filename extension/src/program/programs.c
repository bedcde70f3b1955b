/*
 * programs.c
 *	  Programs that are registered with the keeper, for as long as the session: see
 *	  compile.h.
 *
 * A program's bytes do not depend on constants, so a query that comes again finds
 * its program. When there are too many, all are forgotten but those that the message
 * being made names, and whoever still uses one registers it again: the epoch tells.
 *
 * Invariants: a handle is used only in the epoch and with the connection that
 * it is from; what a message names is not forgotten before the message is sent.
 */
#include "postgres.h"

#include "session/channel.h"
#include "common/hashfn.h"
#include "program/compile.h"
#include "utils/memutils.h"

/* More than so many are forgotten, unless one message names them all. */
#define PROGRAMS_MAX 256

typedef struct Registered
{
	uint32		hash;
	uint32		handle;
	int			length;
	unsigned char *bytes;
	uint64		message;		/* the last that named it */
} Registered;

static Registered *programs = NULL;
static int	count = 0;
static int	room = 0;
static uint32 generation = 0;
static uint64 epoch = 1;
static uint64 message = 1;

/* The keeper that they were registered with is gone. */
static void
forget_all(void)
{
	while (count > 0)
		pfree(programs[--count].bytes);
	epoch++;
}

/* Forgets what the message being made does not name. */
static void
forget_others(void)
{
	uint32	   *handles = palloc(count * sizeof(uint32));
	int			forgotten = 0;
	int			kept = 0;

	epoch++;
	for (int i = 0; i < count; i++)
	{
		if (programs[i].message == message)
			programs[kept++] = programs[i];
		else
		{
			handles[forgotten++] = programs[i].handle;
			pfree(programs[i].bytes);
		}
	}
	count = kept;
	for (int i = 0; i < forgotten; i++)
	{
		CfdWireProgramForget body = {.program = handles[i]};

		cfd_send(CFD_KIND_PROGRAM_FORGET, &body, sizeof(body), NULL, 0);
	}
	pfree(handles);
}

/* Room for one more program. */
static void
make_room(void)
{
	if (count >= PROGRAMS_MAX)
		forget_others();
	if (count < room)
		return;
	room = Max(PROGRAMS_MAX, room * 2);
	programs = programs == NULL ? MemoryContextAlloc(TopMemoryContext, room * sizeof(Registered))
		: repalloc(programs, room * sizeof(Registered));
}

static unsigned char *
bytes_of(const CfdProgram *program, int *length)
{
	const CfdCompiler *compiler = program->compiler;
	CfdWireProgram head = {.inputs = compiler->count,.instructions = program->instructions};
	Size		code = program->instructions * sizeof(CfdWireInstruction);
	unsigned char *bytes;
	unsigned char *types;

	*length = sizeof(head) + compiler->count + code;
	bytes = palloc(*length);
	memcpy(bytes, &head, sizeof(head));
	types = bytes + sizeof(head);
	for (int i = 0; i < compiler->count; i++)
		types[i] = compiler->inputs[i].type;
	memcpy(types + compiler->count, program->code, code);
	return bytes;
}

static Registered *
cfd_programs_add(const unsigned char *bytes, int length, uint32 hash)
{
	CfdReadProgramRegisterAnswer read;
	unsigned char *copy;

	make_room();
	copy = MemoryContextAlloc(TopMemoryContext, length);
	memcpy(copy, bytes, length);
	PG_TRY();
	{
		uint32		answer_length;
		const char *answer = cfd_call(CFD_KIND_PROGRAM_REGISTER, NULL, 0, bytes, length, &answer_length);

		CFD_DECODE(program_register_answer, answer, answer_length, &read);
	}
	PG_CATCH();
	{
		pfree(copy);
		PG_RE_THROW();
	}
	PG_END_TRY();
	programs[count] = (Registered) {.hash = hash,.handle = read.head.program,.length = length,.bytes = copy};
	return &programs[count++];
}

static Registered *
find_or_add(const unsigned char *bytes, int length)
{
	uint32		hash = hash_bytes(bytes, length);

	for (int i = 0; i < count; i++)
	{
		if (programs[i].hash == hash && programs[i].length == length &&
			memcmp(programs[i].bytes, bytes, length) == 0)
			return &programs[i];
	}
	return cfd_programs_add(bytes, length, hash);
}

void
cfd_program_message(void)
{
	message++;
}

uint32
cfd_program_handle(CfdProgram *program)
{
	unsigned char *bytes;
	Registered *registered;
	int			length;

	cfd_begin();
	if (generation != cfd_channel.generation)
	{
		forget_all();
		generation = cfd_channel.generation;
	}
	if (program->epoch == epoch)
	{
		programs[program->place].message = message;
		return programs[program->place].handle;
	}
	bytes = bytes_of(program, &length);
	registered = find_or_add(bytes, length);
	registered->message = message;
	program->place = registered - programs;
	program->epoch = epoch;
	pfree(bytes);
	return registered->handle;
}
