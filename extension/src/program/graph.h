/*
 * graph.h
 *	  Expression graphs, the intermediate form between an expression and a
 *	  program. Shared by the files of the compiler.
 *
 * compile.c manages nodes and inputs and emits instructions; expressions.c
 * converts PostgreSQL expression trees into nodes.
 *
 * The keeper evaluates a whole program for every row. It discards errors of
 * rows that PostgreSQL would not have evaluated (AND, OR, SELECT). Errors that
 * PostgreSQL itself raises while it computes an input could not be discarded.
 * Therefore, below a node that may not be reached ("lazy"), only expressions
 * that cannot fail become inputs.
 *
 * Invariant: equal subexpressions are one node; an expression that cannot be
 * compiled yields NONE and leaves no inputs behind.
 */
#ifndef CFD_PROGRAM_GRAPH_H
#define CFD_PROGRAM_GRAPH_H

#include "postgres.h"
#include "program/compile.h"
#include "program/registry.h"
#include "wire/wire.h"

#define ARGS_MAX 4
#define NODES_MAX CFD_PROGRAM_INSTRUCTIONS_MAX
/* Returned for an expression that cannot be compiled. */
#define NONE (-1)
/* Constant lists up to this length become single comparisons. */
#define SHORT_LIST 8

typedef struct GraphNode
{
	uint8		code;
	uint8		type;			/* type of a protected value; 0: a boolean or other plain result */
	uint16		operand;
	int32		immediate;
	int			count;
	int			args[ARGS_MAX];
	int			uses;
	int			local;			/* local variable that holds the result, or -1 */
} GraphNode;

typedef struct Graph
{
	CfdCompiler *compiler;
	GraphNode  *nodes;
	int			count;
} Graph;


/* compile.c */
extern int cfd_graph_add_node(Graph *graph, GraphNode node);
extern int cfd_graph_add_unary(Graph *graph, uint8 code, int a);
extern int cfd_graph_add_binary(Graph *graph, uint8 code, int a, int b);
extern int cfd_graph_add_select(Graph *graph, int condition, int yes, int no);
/* Type code in which values are stored; varchar is stored as text. */
extern uint8 cfd_graph_stored_type(Oid type);
/* Whether equal values of the two types have the same representation in the keeper. */
extern bool cfd_graph_have_one_form(uint8 a, uint8 b);
extern bool cfd_graph_is_constant(Node *expr);
extern int cfd_graph_add_input(Graph *graph, Node *expr, bool lazy);
/* Adds a list that applies to all rows. */
extern int cfd_graph_add_list(Graph *graph, Node *array, uint8 type);
extern int cfd_graph_add_boolean(Graph *graph, bool isnull, bool value);
extern int cfd_graph_add_null(Graph *graph, uint8 type);

/* expressions.c */
/* Compiles a call of one of Confide's functions. */
extern int cfd_graph_compile_call(Graph *graph, const CfdFunction *function, List *args, Oid result, bool lazy);
/* Whether any node added since node number `from` is a call. */
extern bool cfd_graph_has_call(Graph *graph, int from);
extern bool cfd_graph_has_our_functions(Node *node, void *context);
/*
 * Compiles an expression, or makes it an input that PostgreSQL evaluates.
 * Returns NONE if neither is possible.
 */
extern int cfd_graph_compile(Graph *graph, Node *expr, bool lazy);

#endif
