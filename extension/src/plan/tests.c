/*
 * tests.c
 *	  Makes the tests of estimators; see tests.h.
 *
 * Invariant: as in tests.h.
 */
#include "postgres.h"

#include "plan/planning.h"
#include "plan/tests.h"
#include "session/channel.h"
#include "utils/memutils.h"

/* CfdTests sent in one message, all with the same function. */
typedef struct Message
{
	const CfdFunction *function;
	int			rows;
	CfdRequest	request;
	struct Message *next;
} Message;

static void
cfd_tests_send(Message *message, const List *tests)
{
	CfdWireDeclassify body = {
		.program = message->function->signature,.rows = message->rows,.columns = 2
	};
	Size		column = sizeof(CfdFid) * message->rows;
	CfdFid	   *fids = palloc(2 * column);
	CfdFid	   *first = fids;
	CfdFid	   *second = fids + message->rows;
	ListCell   *cell;

	foreach(cell, tests)
	{
		const CfdTests *made = lfirst(cell);

		if (made->function != message->function)
			continue;
		for (int i = 0; i < made->count; i++)
		{
			*first++ = made->constant_first ? made->constant : made->values[i];
			*second++ = made->constant_first ? made->values[i] : made->constant;
		}
	}
	cfd_request(&message->request, CFD_KIND_DECLASSIFY, &body, sizeof(body), fids, 2 * column, message->rows);
}

/* Answers live as long as the planning, or as a call of an estimator outside of it. */
static CfdScopeName
cfd_tests_scope(void)
{
	return cfd_planning != NULL ? CFD_SCOPE_PLANNING : CFD_SCOPE_ESTIMATE;
}

uint16
cfd_tests_comparison(const CfdFunction *function)
{
	return function->holds != 0 ? function->second : function->signature;
}

uint8
cfd_tests_orders(const CfdFunction *function)
{
	return function->holds != 0 ? function->holds : CFD_ORDER_HOLDS;
}

void
cfd_tests_put(CfdScope *scope, const CfdTests *made, CfdFid value, char answer)
{
	uint8		holds = cfd_tests_orders(made->function);

	if (answer == 0 || answer == 1)
		cfd_known_put_order(scope, cfd_tests_comparison(made->function), made->constant_first ? made->constant : value,
							made->constant_first ? value : made->constant,
							answer == 1 ? holds : CFD_ORDER_ANY & ~holds);
}

static void
cfd_tests_take(Message *message, const List *tests)
{
	uint32		length;
	const char *answer = cfd_await(&message->request, &length);
	ListCell   *cell;

	if (length != (uint32) message->rows)
		cfd_violation("declassified results have the wrong length");
	foreach(cell, tests)
	{
		const CfdTests *made = lfirst(cell);

		if (made->function != message->function)
			continue;
		for (int i = 0; i < made->count; i++)
			cfd_tests_put(&cfd_known[cfd_tests_scope()], made, made->values[i], *answer++);
	}
}

void
cfd_tests_make(const List *tests)
{
	MemoryContext own = AllocSetContextCreate(CurrentMemoryContext, "Confide estimates", ALLOCSET_SMALL_SIZES);
	MemoryContext before = CurrentMemoryContext;
	Message    *messages = NULL;
	Message    *message;
	ListCell   *cell;

	Assert(tests != NIL);
	foreach(cell, tests)
	{
		const CfdTests *made = lfirst(cell);

		for (message = messages; message != NULL; message = message->next)
		{
			if (message->function == made->function)
				break;
		}
		MemoryContextSwitchTo(own);
		if (message == NULL)
		{
			message = palloc0(sizeof(Message));
			cfd_request_init(&message->request);
			message->function = made->function;
			message->next = messages;
			messages = message;
		}
		message->rows += made->count;
		MemoryContextSwitchTo(before);
	}
	MemoryContextSwitchTo(own);
	cfd_hold();
	for (message = messages; message != NULL; message = message->next)
		cfd_tests_send(message, tests);
	for (message = messages; message != NULL; message = message->next)
		cfd_tests_take(message, tests);
	MemoryContextSwitchTo(before);
	MemoryContextDelete(own);
}

bool
cfd_test_known(const CfdTests *made, int number, bool *holds)
{
	CfdFid		value = made->values[number];

	return cfd_known_test(cfd_tests_comparison(made->function), cfd_tests_orders(made->function),
						  made->constant_first ? made->constant : value,
						  made->constant_first ? value : made->constant, holds);
}

bool
cfd_tests_known(const CfdTests *made)
{
	for (int i = 0; i < made->count; i++)
	{
		bool		holds;

		if (!cfd_test_known(made, i, &holds))
			return false;
	}
	return true;
}
