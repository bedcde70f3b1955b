/*
 * programs.c
 *	  Programs registered with the keeper during this session; see
 *	  compile.h.
 *
 * A program does not contain constants, so a query that is run again finds its
 * program. When there are too many, all are dropped except those that the
 * message under construction names. The epoch then changes, and other users
 * register their programs again.
 *
 * Invariants: a handle is used only in its own epoch and on its own
 * connection; a program named by the message under construction is not dropped
 * before that message is sent.
 */
#include "postgres.h"

#include "session/channel.h"
#include "common/hashfn.h"
#include "program/compile.h"
#include "utils/memutils.h"

/* Number of programs kept, unless a single message names more. */
#define PROGRAMS_MAX 256

typedef struct Registered
{
	uint32		hash;
	uint32		handle;
	int			length;
	unsigned char *bytes;
	uint64		message;		/* last message that named it */
} Registered;

static Registered *programs = NULL;
static int	count = 0;
static int	room = 0;
static uint32 generation = 0;
static uint64 epoch = 1;
static uint64 message = 1;

/* The keeper with which they were registered is gone. */
static void
forget_all(void)
{
	while (count > 0)
		pfree(programs[--count].bytes);
	epoch++;
}

/* Drops every program that the message under construction does not name. */
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

/* Makes room for one more program. */
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
