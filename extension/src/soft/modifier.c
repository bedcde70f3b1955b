/*
 * modifier.c
 *	  Type modifiers of the family soft_: names of encodings, precision and
 *	  scale of a numeric, and the number of the column's key, as in
 *	  soft_numeric(10, 2, eq, key_17).
 *
 * A column without a number gets one when it is created (hooks/soft.c).
 *
 * Invariant: typmod_in reads the output of typmod_out as the same modifier.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "compat/compat.h"
#include "lib/stringinfo.h"
#include "soft/soft.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "value/types.h"

#define KEY_MAX ((1 << CFD_SOFT_KEY_BITS) - 1)
#define KEY_NAME "key_"

typedef struct Encoding
{
	uint8		encoding;
	const char *name;
} Encoding;

static const Encoding names[] = {
#define X(code, name) {code, name},
	CFD_SOFT_ENCODINGS(X)
#undef X
};

const char *
cfd_soft_encoding_name(uint8 encodings)
{
	for (int i = 0; i < lengthof(names); i++)
	{
		if (encodings & names[i].encoding)
			return names[i].name;
	}
	return "";
}

pg_noreturn static void refuse_modifier(const char *word, const char *hint);

static void
refuse_modifier(const char *word, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid type modifier \"%s\"", word),
			 errhint("%s", hint)));
}

/* Parses a decimal number that does not exceed the limit. */
static bool
soft_number(const char *text, int64 limit, int64 *number)
{
	*number = 0;
	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++)
	{
		if (*text < '0' || *text > '9')
			return false;
		*number = *number * 10 + (*text - '0');
		if (*number > limit)
			return false;
	}
	return true;
}

static uint8
read_encoding(const char *word)
{
	for (int i = 0; i < lengthof(names); i++)
	{
		if (strcmp(word, names[i].name) == 0)
			return names[i].encoding;
	}
	refuse_modifier(word, "A modifier is an encoding (eq, ord, ord_8, add, mul) or the number of a key (key_17).");
}

static int32
packed(uint32 encodings, uint32 shape, uint32 key)
{
	return encodings << CFD_SOFT_ENCODINGS_SHIFT | shape << CFD_SOFT_SHAPE_SHIFT | key;
}

/* Combines precision and scale into one number; 0 if there are none. */
static uint32
shape_of(const int64 *numbers, int count)
{
	if (count == 0)
		return 0;
	if (numbers[0] < 1 || numbers[0] > CFD_SOFT_PRECISION_MAX || (count > 1 && numbers[1] > numbers[0]))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid precision or scale of soft_numeric"),
				 errdetail("Precision must be between 1 and %d, scale between 0 and the precision.",
						   CFD_SOFT_PRECISION_MAX)));
	return numbers[0] * (numbers[0] + 1) / 2 + (count > 1 ? numbers[1] : 0);
}

PG_FUNCTION_INFO_V1(cfd_soft_typmod_in);
Datum
cfd_soft_typmod_in(PG_FUNCTION_ARGS)
{
	ArrayType  *words = PG_GETARG_ARRAYTYPE_P(0);
	bool		text = strstr(get_func_name(fcinfo->flinfo->fn_oid), "text") != NULL;
	bool		numeric = strstr(get_func_name(fcinfo->flinfo->fn_oid), "numeric") != NULL;
	int64		numbers[2];
	int			count = 0;
	uint32		encodings = 0;
	int64		key = 0;
	int64		ordered = 0;
	Datum	   *items;
	int			length;

	deconstruct_array(words, CSTRINGOID, -2, false, TYPALIGN_CHAR, &items, NULL, &length);
	for (int i = 0; i < length; i++)
	{
		const char *word = DatumGetCString(items[i]);
		int64		modifier;

		/* The complete modifier, as set by hooks/soft.c. */
		if (word[0] == '#' && soft_number(word + 1, PG_INT32_MAX, &modifier))
			PG_RETURN_INT32(modifier);
		if (numeric && count < 2 && soft_number(word, PG_INT32_MAX, &numbers[count]))
			count++;
		else if (text && strncmp(word, CFD_SOFT_ORDER_NAME, strlen(CFD_SOFT_ORDER_NAME)) == 0)
		{
			if (!soft_number(word + strlen(CFD_SOFT_ORDER_NAME), CFD_SOFT_ORDER_BYTES_MAX, &ordered) || ordered == 0)
				refuse_modifier(word, "The order of a text is that of its first 1 to 32 bytes (ord_8).");
			encodings |= CFD_SOFT_ORD;
		}
		else if (strncmp(word, KEY_NAME, strlen(KEY_NAME)) != 0)
			encodings |= read_encoding(word);
		else if (!soft_number(word + strlen(KEY_NAME), KEY_MAX, &key) || key == 0)
			refuse_modifier(word, "Numbers of keys are between 1 and 524287.");
	}
	PG_RETURN_INT32(packed(encodings, text ? ordered : shape_of(numbers, count), key));
}

PG_FUNCTION_INFO_V1(cfd_soft_typmod_out);
Datum
cfd_soft_typmod_out(PG_FUNCTION_ARGS)
{
	int32		typmod = PG_GETARG_INT32(0);
	int			shape = cfd_soft_shape(typmod);
	bool		text = strstr(get_func_name(fcinfo->flinfo->fn_oid), "text") != NULL;
	const char *comma = "";
	StringInfoData out;

	initStringInfo(&out);
	if (typmod <= 0)
		PG_RETURN_CSTRING(out.data);
	appendStringInfoChar(&out, '(');
	if (shape != 0 && !text)
	{
		int			precision = 1;

		while ((precision + 1) * (precision + 2) / 2 <= shape)
			precision++;
		appendStringInfo(&out, "%d,%d", precision, shape - precision * (precision + 1) / 2);
		comma = ",";
	}
	for (int i = 0; i < lengthof(names); i++)
	{
		if (cfd_soft_encodings(typmod) & names[i].encoding)
		{
			appendStringInfo(&out, "%s%s", comma, names[i].name);
			if (text && names[i].encoding == CFD_SOFT_ORD && shape != 0)
				appendStringInfo(&out, "_%d", shape);
			comma = ",";
		}
	}
	if (cfd_soft_key(typmod) != 0)
		appendStringInfo(&out, "%s" KEY_NAME "%u", comma, cfd_soft_key(typmod));
	appendStringInfoChar(&out, ')');
	PG_RETURN_CSTRING(out.data);
}

int32
cfd_soft_completed(uint8 code, int32 typmod, uint32 key)
{
	uint8		encodings = cfd_soft_encodings(typmod);
	uint8		possible = cfd_soft_possible(code);
	uint8		shape = cfd_soft_shape(typmod);

	if (encodings & ~possible)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type soft_%s has no encoding \"%s\"", cfd_plain_name(code),
						cfd_soft_encoding_name(encodings & ~possible))));
	if (code == CFD_TYPE_NUMERIC && shape == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a column of type soft_numeric needs a precision and a scale"),
				 errhint("Write soft_numeric(10, 2).")));
	if (encodings == 0)
		encodings = cfd_soft_usual(code);
	if (code == CFD_TYPE_TEXT && (encodings & CFD_SOFT_ORD))
	{
		if ((encodings & CFD_SOFT_EQ) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("the encoding \"ord\" of type soft_text needs \"eq\""),
					 errdetail("Texts with equal first bytes are told apart by it."),
					 errhint("Write soft_text(eq, ord).")));
		if (shape == 0)
			shape = CFD_SOFT_ORDER_BYTES;
	}
	if (cfd_soft_key(typmod) != 0)
		key = cfd_soft_key(typmod);
	return packed(encodings, shape, key);
}
