/*
 * graph.h
 *	  Expressions as a graph on their way to a program: what the compiler's files share.
 *
 * compile.c has nodes and inputs, and writes the instructions; expressions.c makes nodes of
 * PostgreSQL's expressions.
 *
 * Everything in a program is evaluated for all rows, and failures of rows that
 * PostgreSQL would not have come to are dropped by the keeper (AND, OR, SELECT).
 * What PostgreSQL evaluates for an input could not be dropped: so below a place
 * that it may not come to ("lazy"), only harmless expressions become inputs.
 *
 * Invariant: equal parts are one node; what cannot be compiled gives NONE, and no input is left of it.
 */
#ifndef CFD_PROGRAM_GRAPH_H
#define CFD_PROGRAM_GRAPH_H

#include "postgres.h"
#include "program/compile.h"
#include "program/registry.h"
#include "wire/wire.h"

#define ARGS_MAX 4
#define NODES_MAX CFD_PROGRAM_INSTRUCTIONS_MAX
/* No node: this cannot be compiled. */
#define NONE (-1)
/* Constant lists up to this length are compared one by one. */
#define SHORT_LIST 8

typedef struct GraphNode
{
	uint8		code;
	uint8		type;			/* of a value; 0: a boolean or the like */
	uint16		operand;
	int32		immediate;
	int			count;
	int			args[ARGS_MAX];
	int			uses;
	int			local;			/* where it is kept once computed, or -1 */
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
/* varchar values are text values. */
extern uint8 cfd_graph_stored_type(Oid type);
/* Whether equal values of two types have one form for the keeper. */
extern bool cfd_graph_have_one_form(uint8 a, uint8 b);
extern bool cfd_graph_is_constant(Node *expr);
extern int cfd_graph_add_input(Graph *graph, Node *expr, bool lazy);
/* A list for all rows. */
extern int cfd_graph_add_list(Graph *graph, Node *array, uint8 type);
extern int cfd_graph_add_boolean(Graph *graph, bool isnull, bool value);
extern int cfd_graph_add_null(Graph *graph, uint8 type);

/* expressions.c */
/* A call of one of our functions. */
extern int cfd_graph_compile_call(Graph *graph, const CfdFunction *function, List *args, Oid result, bool lazy);
/* Whether there is a call in what is new since a node. */
extern bool cfd_graph_has_call(Graph *graph, int from);
extern bool cfd_graph_has_our_functions(Node *node, void *context);
/* Compiles, or lets PostgreSQL evaluate it for an input; NONE where neither can be. */
extern int cfd_graph_compile(Graph *graph, Node *expr, bool lazy);

#endif
