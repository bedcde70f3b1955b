/*
 * compile.h
 *	  Compiles PostgreSQL expressions into programs of the keeper.
 *
 * A CfdCompiler collects the inputs of one plan node: columns, constants,
 * parameters, and whatever PostgreSQL itself must evaluate. Programs compiled
 * with it share these inputs, so that one batch of columns serves all of them
 * (cfd_program_handle may be called once the last one is compiled). Evaluates
 * nothing; batch/inputs.h puts inputs into a batch.
 *
 * Constants are inputs, too. A program is therefore the same for all queries
 * of the same shape, and stays registered during the session.
 *
 * Invariants: a program returns what PostgreSQL would return row by row,
 * including NULLs and errors; an input that PostgreSQL evaluates although it
 * might not have been reached has no side effects and raises no errors.
 */
#ifndef CFD_PROGRAM_COMPILE_H
#define CFD_PROGRAM_COMPILE_H

#include "postgres.h"
#include "lib/stringinfo.h"
#include "wire/wire.h"
#include "nodes/pg_list.h"
#include "nodes/primnodes.h"

typedef struct CfdInput
{
	Expr	   *expr;			/* evaluated by PostgreSQL: a Var, Const, Param, ... */
	uint8		type;			/* type code; 0: plain boolean */
	bool		constant;		/* the same for all rows until the next rescan */
	bool		list;			/* ... an array of that type, used as a list for all rows */
	bool		cell;			/* a cell that contains a value of that type */
} CfdInput;

typedef struct CfdCompiler
{
	CfdInput   *inputs;
	int			count;
	bool		lists;			/* inputs may be lists */
} CfdCompiler;

typedef enum CfdResult
{
	CFD_RESULT_FID,
	CFD_RESULT_BOOL,
	CFD_RESULT_ORDER,
	CFD_RESULT_HASH
} CfdResult;

typedef struct CfdProgram
{
	CfdCompiler *compiler;
	CfdResult	result;
	uint8		type;			/* type code of a FID */
	int			calls;			/* number of operations of the keeper, including opening cells */
	int			instructions;
	const CfdWireInstruction *code;
	char	   *text;			/* for EXPLAIN; contains no values */
	int			place;			/* position in the registry, valid if epoch is the current one */
	uint64		epoch;
} CfdProgram;

extern CfdCompiler *cfd_compiler(void);
/*
 * A compiler whose programs may have lists as inputs: x = ANY (list) then
 * takes a single operation, whatever the length of the list.
 */
extern CfdCompiler *cfd_compiler_with_lists(void);
/*
 * Compiles an expression of a protected type or a boolean one. Returns NULL if
 * it does not involve the keeper or cannot be compiled.
 */
extern CfdProgram *cfd_compile(CfdCompiler *compiler, Node *expr);
/* As above, for a list of implicitly ANDed quals. The result is never NULL. */
extern CfdProgram *cfd_compile_quals(CfdCompiler *compiler, List *quals);
/* Compiles a call whose order or hash is declassified. */
extern CfdProgram *cfd_compile_call(CfdCompiler *compiler, Oid function, List *args);
/*
 * Conversion of a program to and from the form stored in a plan. The
 * expressions of its inputs are stored separately, so that setrefs.c adapts
 * them. A qual is thus compiled at planning, not at execution.
 */
extern List *cfd_program_list(const CfdProgram *program);
extern List *cfd_program_inputs(const CfdProgram *program);
extern CfdProgram *cfd_program_of_list(const List *list, const List *inputs);
/* Whether cfd_compile would return a program. */
extern bool cfd_compilable(Node *expr);
/* Whether an expression has no side effects and cannot raise errors. */
extern bool cfd_harmless(Node *expr);
/*
 * To be called before a message that names programs is built. Programs named
 * by the previous one may be dropped from then on.
 */
extern void cfd_program_message(void);
/*
 * The keeper's handle of the program, valid until the next message is built.
 * Registers the program if necessary.
 */
extern uint32 cfd_program_handle(CfdProgram *program);

#endif
