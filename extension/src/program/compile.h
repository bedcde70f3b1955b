/*
 * compile.h
 *	  From PostgreSQL's expressions to programs of the keeper.
 *
 * A CfdCompiler collects the inputs of one plan node: columns, constants,
 * parameters, and whatever PostgreSQL itself must evaluate. The programs compiled
 * with it share these inputs, so one batch of columns serves all of them
 * (cfd_program_handle once the last one is compiled). Does not evaluate
 * anything; batch/inputs.h brings inputs into a batch.
 *
 * Constants are inputs, too: so a program is the same whenever the query has the
 * same shape, and stays registered for as long as the session.
 *
 * Invariants: a program gives what PostgreSQL would give row by row, NULL and
 * errors included; what PostgreSQL evaluates for an input, although it would
 * perhaps not have come to it, has no effects and raises no errors.
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
	Expr	   *expr;			/* what PostgreSQL evaluates: a Var, Const, Param, ... */
	uint8		type;			/* type code; 0: plain boolean */
	bool		constant;		/* the same for all rows until a rescan */
	bool		list;			/* ... an array of that type: a list for all rows */
	bool		cell;			/* a cell with a value of that type */
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
	int			calls;			/* operations of the keeper in it; to open a cell is one */
	int			instructions;
	const CfdWireInstruction *code;
	char	   *text;			/* for people; no values */
	int			place;			/* among those registered, if epoch is the current one */
	uint64		epoch;
} CfdProgram;

extern CfdCompiler *cfd_compiler(void);
/* One whose programs may have lists as inputs: x = ANY (list) is one question, however long it is. */
extern CfdCompiler *cfd_compiler_with_lists(void);
/*
 * A program for an expression of a protected type, or a boolean one; NULL if there
 * is nothing in it for the keeper to do, or it cannot be compiled.
 */
extern CfdProgram *cfd_compile(CfdCompiler *compiler, Node *expr);
/* As above: whether all of the quals (implicitly ANDed) hold. Never NULL as a result. */
extern CfdProgram *cfd_compile_quals(CfdCompiler *compiler, List *quals);
/* A program that declassifies the order of two inputs' types, or the hash of one. */
extern CfdProgram *cfd_compile_call(CfdCompiler *compiler, Oid function, List *args);
/*
 * A program as the plan keeps it, with the expressions of its inputs apart: these PostgreSQL adapts
 * to where the plan stands. So a qual is compiled when it is planned, and not when it is executed.
 */
extern List *cfd_program_list(const CfdProgram *program);
extern List *cfd_program_inputs(const CfdProgram *program);
extern CfdProgram *cfd_program_of_list(const List *list, const List *inputs);
/* Whether cfd_compile would give a program. */
extern bool cfd_compilable(Node *expr);
/* Whether an expression has no effects and raises no errors. */
extern bool cfd_harmless(Node *expr);
/* A message that names programs is made next: those that the last one named are not held any more. */
extern void cfd_program_message(void);
/*
 * The keeper's number for the program, good until the next such message is made; registers
 * it where it is not yet.
 */
extern uint32 cfd_program_handle(CfdProgram *program);

#endif
