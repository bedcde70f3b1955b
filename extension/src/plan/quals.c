/*
 * quals.c
 *	  Which quals the keeper can evaluate: see quals.h.
 *
 * Quals are found again by their address, and compared, since an address may come to be
 * another's; lists are made anew for each path, and compared only.
 *
 * Invariant: as in quals.h.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "plan/planning.h"
#include "plan/quals.h"
#include "program/compile.h"
#include "utils/memutils.h"

#define NOT_COMPILED (-1)

struct CfdQuals
{
	const Node *node;
	Node	   *copy;
	int			operations;
	struct CfdQuals *next;
};

static int
compile_now(Node *node)
{
	CfdProgram *program;

	if (!IsA(node, List))
		return cfd_compilable(node) ? 1 : NOT_COMPILED;
	program = cfd_compile_quals(cfd_compiler_with_lists(), (List *) node);
	return program != NULL ? program->calls : NOT_COMPILED;
}

static int
operations(Node *node)
{
	MemoryContext before;
	CfdQuals   *made;

	if (cfd_planning == NULL)
		return compile_now(node);
	for (CfdQuals *known = cfd_planning->quals; known != NULL; known = known->next)
	{
		if ((known->node == node || (IsA(node, List) && IsA(known->copy, List))) && equal(known->copy, node))
			return known->operations;
	}
	before = MemoryContextSwitchTo(cfd_planning->context);
	made = palloc(sizeof(CfdQuals));
	made->node = node;
	made->copy = copyObject(node);
	made->next = cfd_planning->quals;
	MemoryContextSwitchTo(before);
	made->operations = compile_now(node);
	cfd_planning->quals = made;
	return made->operations;
}

bool
cfd_qual_compiles(Node *qual)
{
	return operations(qual) != NOT_COMPILED;
}

int
cfd_quals_operations(List *quals)
{
	return quals == NIL ? NOT_COMPILED : operations((Node *) quals);
}
