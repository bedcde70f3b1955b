/*
 * units.c
 *	  Field names of extract, date_part and date_trunc.
 *
 * PostgreSQL's tables define the names (years, mon, hrs, ...). Which type has
 * which field is known to the keeper only.
 *
 * Invariant: only field codes of the contract are sent.
 */
#include "postgres.h"

#include "compat/compat.h"
#include "ops/evaluate.h"
#include "parser/scansup.h"
#include "value/types.h"
#include "utils/builtins.h"
#include "utils/datetime.h"

/* PostgreSQL's codes and the corresponding names of the contract. */
static const struct
{
	int			code;
	const char *name;
}			fields[] = {
	{DTK_MICROSEC, "microseconds"},
	{DTK_MILLISEC, "milliseconds"},
	{DTK_SECOND, "second"},
	{DTK_MINUTE, "minute"},
	{DTK_HOUR, "hour"},
	{DTK_DAY, "day"},
	{DTK_WEEK, "week"},
	{DTK_MONTH, "month"},
	{DTK_QUARTER, "quarter"},
	{DTK_YEAR, "year"},
	{DTK_DECADE, "decade"},
	{DTK_CENTURY, "century"},
	{DTK_MILLENNIUM, "millennium"},
	{DTK_DOW, "dow"},
	{DTK_ISODOW, "isodow"},
	{DTK_DOY, "doy"},
	{DTK_ISOYEAR, "isoyear"},
	{DTK_JULIAN, "julian"},
	{DTK_EPOCH, "epoch"},
	{DTK_TZ, "timezone"},
	{DTK_TZ_HOUR, "timezone_hour"},
	{DTK_TZ_MINUTE, "timezone_minute"},
};

static const struct
{
	const char *name;
	int32		unit;
}			units[] = {
#define UNIT(code, name) {name, code},
	CFD_UNITS(UNIT)
#undef UNIT
};

static int32
unit_of(int code)
{
	for (int i = 0; i < lengthof(fields); i++)
	{
		if (fields[i].code != code)
			continue;
		for (int j = 0; j < lengthof(units); j++)
		{
			if (strcmp(units[j].name, fields[i].name) == 0)
				return units[j].unit;
		}
	}
	return 0;
}

/* Name of the plain type that corresponds to the function's second argument. */
static char *
type_of_value(FunctionCallInfo fcinfo)
{
	uint8		code = cfd_type_code(get_fn_expr_argtype(fcinfo->flinfo, 1));

	return code != 0 ? format_type_be(cfd_plain_oid(code)) : pstrdup("date/time");
}

/* Fields that grow with time are infinite for infinite dates; the others are NULL. */
static bool
is_nullable(int code)
{
	switch (code)
	{
		case DTK_YEAR:
		case DTK_DECADE:
		case DTK_CENTURY:
		case DTK_MILLENNIUM:
		case DTK_ISOYEAR:
		case DTK_JULIAN:
		case DTK_EPOCH:
			return false;
		default:
			return true;
	}
}

int32
cfd_unit_code(const text *name)
{
	char	   *lower = downcase_truncate_identifier(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), false);
	int			code;
	int			type = DecodeUnits(0, lower, &code);

	if (type == UNKNOWN_FIELD)
		type = DecodeSpecial(0, lower, &code);
	return type == UNITS || type == RESERV ? unit_of(code) : 0;
}

Datum
cfd_unit(FunctionCallInfo fcinfo, uint32 program, uint32 test)
{
	text	   *name = PG_GETARG_TEXT_PP(0);
	char	   *lower = downcase_truncate_identifier(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), false);
	int			code;
	int			type = DecodeUnits(0, lower, &code);
	int32		unit;
	Datum		result;

	if (type == UNKNOWN_FIELD)
		type = DecodeSpecial(0, lower, &code);
	if (type != UNITS && type != RESERV)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unit \"%s\" not recognized for type %s", lower, type_of_value(fcinfo))));
	unit = unit_of(code);
	if (unit == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("unit \"%s\" not supported for type %s", lower, type_of_value(fcinfo))));
	pfree(lower);
	if (test != 0 && is_nullable(code))
		result = cfd_evaluate_nullable(fcinfo, program, unit, 1, 1, test);
	else
		result = cfd_evaluate(fcinfo, program, unit, 1, 1);
	PG_FREE_IF_COPY(name, 0);
	return result;
}
