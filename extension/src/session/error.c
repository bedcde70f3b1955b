/*
 * error.c
 *	  Raising the keeper's errors; see error.h.
 *
 * The keeper's texts are UTF-8 and never contain a protected value. Invalid
 * text is reduced to ASCII, and an invalid error code becomes an internal
 * error.
 *
 * Invariant: the error level is always ERROR.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "session/channel.h"
#include "session/error.h"
#include "session/pins.h"
#include "mb/pg_wchar.h"

/* Converts a text of the keeper to the server encoding. */
static char *
text_of(const char *told)
{
	char	   *text = pstrdup(told);
	int			length = strlen(text);

	if (!pg_verify_mbstr(PG_UTF8, text, length, true))
	{
		for (char *c = text; *c != '\0'; c++)
			if (IS_HIGHBIT_SET(*c))
				*c = '?';
	}
	return pg_any_to_server(text, length, PG_UTF8);
}

/* The one hint of which the words depend on PostgreSQL's version. */
static char *
hint_of(const char *told)
{
	if (strcmp(told, "Perhaps you need a different \"datestyle\" setting.") == 0)
		return psprintf("Perhaps you need a different \"%s\" setting.", CFD_DATESTYLE);
	return text_of(told);
}

static int
error_code(const uint8 *state)
{
	for (int i = 0; i < 5; i++)
	{
		if (!(state[i] >= '0' && state[i] <= '9') && !(state[i] >= 'A' && state[i] <= 'Z'))
			return ERRCODE_INTERNAL_ERROR;
	}
	/* Classes 00 to 02 (success, warning, no data) are not errors. */
	if (state[0] == '0' && state[1] <= '2')
		return ERRCODE_INTERNAL_ERROR;
	return MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4]);
}

/*
 * On a standby, a held cursor may name values whose sweep has been replayed
 * since. As with PostgreSQL's own recovery conflicts, the query can be run
 * again.
 */
static void
removed_by_recovery(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("a value that is asked for was removed by recovery"),
			 errdetail("A cursor WITH HOLD at a standby does not keep values of rows that the primary has deleted."),
			 errhint("Run the query again; read it to its end in one transaction, or at the primary.")));
}

/*
 * Puts the name of the error code in the constraint field, where programs can
 * read it.
 */
static int
errcode_name(uint16 code)
{
	switch (code)
	{
#define CODE_NAME(number, name) \
		case number: \
			return err_generic_string(PG_DIAG_CONSTRAINT_NAME, name);
			CFD_CODES(CODE_NAME)
#undef CODE_NAME
		default:
			return 0;
	}
}

/* Puts the protected type concerned in the data type field. */
static int
errtype_name(uint8 type)
{
	switch (type)
	{
#define TYPE_NAME(number, name) \
		case number: \
			return err_generic_string(PG_DIAG_DATATYPE_NAME, name);
			CFD_TYPE_NAMES(TYPE_NAME)
#undef TYPE_NAME
		default:
			return 0;
	}
}

void
cfd_raise(const CfdReadError *error)
{
	int			sqlstate = error_code(error->head.sqlstate);
	char	   *message = text_of(error->message);
	char	   *detail = text_of(error->detail);
	char	   *hint = hint_of(error->hint);
	uint16		code = error->head.code;

	if (code == CFD_CODE_NO_CLIENT && cfd_channel.lost_client)
	{
		sqlstate = ERRCODE_CONNECTION_DOES_NOT_EXIST;
		hint = "The keeper was restarted; shake hands again.";
	}
	if (code == CFD_CODE_UNRESOLVED && cfd_is_holder() && RecoveryInProgress())
		removed_by_recovery();
	ereport(ERROR,
			(errcode(sqlstate),
			 errmsg_internal("%s", message[0] != '\0' ? message : "Confide's keeper reports an error"),
			 detail[0] != '\0' ? errdetail_internal("%s", detail) : 0,
			 hint[0] != '\0' ? errhint("%s", hint) : 0,
			 errcode_name(code),
			 errtype_name(error->head.t)));
	pg_unreachable();
}

void
cfd_raise_error(const char *body, uint32 length)
{
	CfdReadError read;

	CFD_DECODE(error, body, length, &read);
	cfd_raise(&read);
}
