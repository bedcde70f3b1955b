/*
 * functions.c
 *	  SQL functions of the family rnd_: input, output, casts, comparisons.
 *	  The functions of each type are generated from the list of types.
 *
 * Everything except comparisons works on temporary values of the corresponding
 * type enc_..., into which a cell is opened.
 *
 * Invariant: as in cell.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "cell/cell.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/vacuum.h"
#include "common/hashfn.h"
#include "compat/compat.h"
#include "lib/stringinfo.h"
#include "libpq/pqformat.h"
#include "nodes/primnodes.h"
#include "ops/evaluate.h"
#include "session/channel.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/sortsupport.h"
#include "utils/syscache.h"
#include "value/base64.h"
#include "value/io.h"
#include "value/place.h"
#include "value/types.h"

#define PREFIX_LENGTH (sizeof(CFD_CELL_PREFIX) - 1)

/*
 * A type, and the signatures of the operations that apply its modifier; 0 if
 * it has no modifiers.
 */
typedef struct Kind
{
	uint8		type;
	uint16		assignment;
	uint16		explicit_cast;
} Kind;

#define CELL_ARG(n) ((struct varlena *) PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(n)))

/* ---------- making a cell ---------- */

/*
 * Applies the modifier to a value and makes it a cell, either sealed for a
 * column or loose.
 */
static Datum
made_cell(FunctionCallInfo fcinfo, CfdFid fid, const Kind *kind, int32 typmod, bool is_explicit, bool fitted)
{
	CfdCellColumn *column = cfd_cell_numbered(typmod) ? cfd_cell_column(typmod) : NULL;
	int32		modifier = column != NULL ? column->modifier : typmod;
	struct varlena *cell;

	if (modifier >= 0 && kind->assignment != 0 && !fitted)
		fid = cfd_evaluate_fid(NULL, is_explicit ? kind->explicit_cast : kind->assignment, modifier, &fid, 1);
	if (column == NULL)
		PG_RETURN_POINTER(cfd_cell_loose(fid));
	/* The column looked up before may have been invalidated. */
	cell = cfd_cell_seal(fid, kind->type, cfd_cell_column(typmod));
	if (cell == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(cell);
}

static inline int32
typmod_argument(FunctionCallInfo fcinfo)
{
	return PG_NARGS() > 1 ? PG_GETARG_INT32(1) : -1;
}

static inline bool
explicit_argument(FunctionCallInfo fcinfo)
{
	return PG_NARGS() > 2 && PG_GETARG_BOOL(2);
}

/* Converts a value of a type enc_..., applying a cast first if there is one. */
static Datum
from_enc(FunctionCallInfo fcinfo, const Kind *kind, uint16 cast)
{
	CfdFid		fid = DatumGetUInt64(PG_GETARG_DATUM(0));

	if (fid == 0)
		cfd_invalid_fid();
	if (cast != 0)
		fid = cfd_evaluate_fid(NULL, cast, 0, &fid, 1);
	return made_cell(fcinfo, fid, kind, typmod_argument(fcinfo), explicit_argument(fcinfo), false);
}

/* Converts a cell of another type. */
static Datum
from_cell(FunctionCallInfo fcinfo, uint8 from, const Kind *kind, uint16 cast)
{
	CfdFid		fid = cfd_cell_open(fcinfo->flinfo, CELL_ARG(0), from);

	if (cast != 0)
		fid = cfd_evaluate_fid(NULL, cast, 0, &fid, 1);
	return made_cell(fcinfo, fid, kind, typmod_argument(fcinfo), explicit_argument(fcinfo), false);
}

static Datum
from_plain(FunctionCallInfo fcinfo, const Kind *kind, uint8 plain, uint16 cast)
{
	CfdFid		fid = DatumGetUInt64(cfd_from_plain(fcinfo, plain, cast));

	return made_cell(fcinfo, fid, kind, typmod_argument(fcinfo), explicit_argument(fcinfo), false);
}

/* Converts a cell for another column or modifier. */
static Datum
fit(FunctionCallInfo fcinfo, const Kind *kind)
{
	struct varlena *cell = CELL_ARG(0);
	int32		typmod = PG_GETARG_INT32(1);
	CfdCellColumn *column = cfd_cell_numbered(typmod) ? cfd_cell_column(typmod) : NULL;

	/* It is sealed for this column already, under its present key. */
	if (column != NULL && column->known && column->modifier < 0 && cfd_cell_is_sealed(cell) &&
		column->token == (cfd_cell_token(cell) != NULL) &&
		memcmp(VARDATA_ANY(cell) + 2, column->identity, CFD_CELL_COLUMN_BYTES) == 0 &&
		memcmp(VARDATA_ANY(cell) + CFD_CELL_GENERATION_AT, column->generation, CFD_CELL_GENERATION_BYTES) == 0)
		PG_RETURN_POINTER(cell);
	if (column == NULL && (typmod < 0 || kind->assignment == 0))
		PG_RETURN_POINTER(cell);
	return made_cell(fcinfo, cfd_cell_open(fcinfo->flinfo, cell, kind->type), kind, typmod,
					 explicit_argument(fcinfo), false);
}

/* ---------- input ---------- */

/* Converts a value that came in an envelope. */
static Datum
taken(FunctionCallInfo fcinfo, const Kind *kind, PGFunction input)
{
	int32		typmod = PG_GETARG_INT32(2);
	LOCAL_FCINFO(inner, 3);
	CfdFid		fid;
	bool		constant = cfd_mode == CFD_MODE_CATALOG && cfd_first_call(fcinfo->flinfo);
	bool		numbered = cfd_cell_numbered(typmod);
	struct varlena *cell;

	InitFunctionCallInfoData(*inner, fcinfo->flinfo, 3, InvalidOid, NULL, NULL);
	inner->args[0] = fcinfo->args[0];
	inner->args[1] = fcinfo->args[1];
	inner->args[2].value = Int32GetDatum(numbered ? cfd_cell_column(typmod)->modifier : typmod);
	inner->args[2].isnull = false;
	fid = DatumGetUInt64(input(inner));
	if (numbered || !constant)
		return made_cell(fcinfo, fid, kind, numbered ? typmod : -1, false, true);
	/* A constant in a stored definition must be sealed. */
	cell = cfd_cell_seal(fid, kind->type, NULL);
	if (cell == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(cell);
}

static Datum
cell_in(FunctionCallInfo fcinfo, const Kind *kind, PGFunction input)
{
	const char *text = PG_GETARG_CSTRING(0);
	struct varlena *cell;

	if (strncmp(text, CFD_CELL_PREFIX, PREFIX_LENGTH) != 0)
		return taken(fcinfo, kind, input);
	cell = cfd_base64_varlena(text + PREFIX_LENGTH);
	if (cell == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("malformed cell of type rnd_%s", cfd_plain_name(kind->type)),
				 errhint("Cells must be passed on unchanged.")));
	cfd_cell_check(cell, kind->type);
	PG_RETURN_POINTER(cell);
}

static Datum
cell_recv(FunctionCallInfo fcinfo, const Kind *kind, PGFunction input)
{
	StringInfo	buffer = (StringInfo) PG_GETARG_POINTER(0);
	int			bytes = buffer->len - buffer->cursor;
	struct varlena *cell;

	if (bytes == 0 ||
		(buffer->data[buffer->cursor] != CFD_CELL_SEALED && buffer->data[buffer->cursor] != CFD_CELL_TOKENED))
		return taken(fcinfo, kind, input);
	cell = palloc(VARHDRSZ + bytes);
	SET_VARSIZE(cell, VARHDRSZ + bytes);
	pq_copymsgbytes(buffer, VARDATA(cell), bytes);
	cfd_cell_check(cell, kind->type);
	PG_RETURN_POINTER(cell);
}

/* ---------- output ---------- */

/*
 * The envelope for the session's client, made by the output function of the
 * type enc_....
 */
static Datum
cell_shown(FunctionCallInfo fcinfo, struct varlena *cell, uint8 type, PGFunction output)
{
	LOCAL_FCINFO(inner, 1);

	InitFunctionCallInfoData(*inner, fcinfo->flinfo, 1, InvalidOid, NULL, NULL);
	inner->args[0].value = UInt64GetDatum(cfd_cell_open(fcinfo->flinfo, cell, type));
	inner->args[0].isnull = false;
	return output(inner);
}

/* Whether a cell is written unchanged, as for a dump, which needs no keeper. */
static bool
goes_out(const FmgrInfo *flinfo, const struct varlena *cell)
{
	bool		converts = flinfo != NULL && flinfo->fn_expr != NULL && IsA(flinfo->fn_expr, CoerceViaIO);

	return !cfd_channel.had_client && !converts && cfd_cell_is_sealed(cell);
}

static Datum
cell_out(FunctionCallInfo fcinfo, uint8 type, PGFunction output)
{
	struct varlena *cell = CELL_ARG(0);
	size_t		bytes = VARSIZE_ANY_EXHDR(cell);
	size_t		length = CFD_BASE64_LENGTH(bytes);
	char	   *text;

	if (!goes_out(fcinfo->flinfo, cell))
		return cell_shown(fcinfo, cell, type, output);
	text = palloc(PREFIX_LENGTH + length + 1);
	memcpy(text, CFD_CELL_PREFIX, PREFIX_LENGTH);
	cfd_base64_encode(text + PREFIX_LENGTH, (const unsigned char *) VARDATA_ANY(cell), bytes);
	text[PREFIX_LENGTH + length] = '\0';
	PG_RETURN_CSTRING(text);
}

static Datum
cell_send(FunctionCallInfo fcinfo, uint8 type, PGFunction output)
{
	struct varlena *cell = CELL_ARG(0);
	bytea	   *result;

	if (!goes_out(fcinfo->flinfo, cell))
		return cell_shown(fcinfo, cell, type, output);
	result = palloc(VARHDRSZ + VARSIZE_ANY_EXHDR(cell));
	SET_VARSIZE(result, VARHDRSZ + VARSIZE_ANY_EXHDR(cell));
	memcpy(VARDATA(result), VARDATA_ANY(cell), VARSIZE_ANY_EXHDR(cell));
	PG_RETURN_BYTEA_P(result);
}

/* ---------- modifiers ---------- */

/* Reads "#n", the number assigned by hooks/cells.c. Returns false for anything else. */
static bool
read_number(ArrayType *array, int32 *typmod)
{
	Datum	   *elements;
	int			count;
	char	   *text;
	char	   *end;
	unsigned long number;
	int32		modifier;

	deconstruct_array(array, CSTRINGOID, -2, false, TYPALIGN_CHAR, &elements, NULL, &count);
	text = count == 1 ? DatumGetCString(elements[0]) : "";
	if (text[0] != '#' || text[1] == '\0')
		return false;
	number = strtoul(text + 1, &end, 10);
	if (*end != '\0' || number == 0 || number >= CFD_CELL_NUMBERED)
		return false;
	*typmod = (int32) (CFD_CELL_NUMBERED | (uint32) number);
	return OidIsValid(cfd_cell_relation(*typmod, &modifier));
}

static Oid
plain_typmod_function(uint8 type, bool in)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(cfd_plain_oid(type)));
	Oid			result;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	result = in ? ((Form_pg_type) GETSTRUCT(tuple))->typmodin : ((Form_pg_type) GETSTRUCT(tuple))->typmodout;
	ReleaseSysCache(tuple);
	return result;
}

static Datum
typmod_in(FunctionCallInfo fcinfo, uint8 type)
{
	Oid			plain = plain_typmod_function(type, true);
	int32		typmod = -1;

	if (read_number(PG_GETARG_ARRAYTYPE_P(0), &typmod))
		PG_RETURN_INT32(typmod);
	if (!OidIsValid(plain))
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("type modifier is not allowed for type \"rnd_%s\"", cfd_plain_name(type))));
	if (type == CFD_TYPE_INTERVAL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type rnd_interval takes no modifier"),
				 errhint("Cast to enc_interval with the modifier first.")));
	PG_RETURN_DATUM(OidFunctionCall1(plain, PG_GETARG_DATUM(0)));
}

static Datum
typmod_out(FunctionCallInfo fcinfo, uint8 type)
{
	Oid			plain = plain_typmod_function(type, false);
	int32		typmod = PG_GETARG_INT32(0);
	int32		modifier = -1;

	if (!cfd_cell_numbered(typmod))
		modifier = typmod;
	else
		(void) cfd_cell_relation(typmod, &modifier);
	if (modifier < 0 || !OidIsValid(plain))
		PG_RETURN_CSTRING(pstrdup(""));
	PG_RETURN_DATUM(OidFunctionCall1(plain, Int32GetDatum(modifier)));
}

/* ---------- comparisons ---------- */

static int
compare_in_sort(Datum a, Datum b, SortSupport ssup)
{
	const CfdCellOperand *operands = ssup->ssup_extra;

	return cfd_cell_compare(operands, PointerGetDatum(PG_DETOAST_DATUM_PACKED(a)),
							PointerGetDatum(PG_DETOAST_DATUM_PACKED(b)), 0);
}

static Datum
sort_support(FunctionCallInfo fcinfo, uint8 type)
{
	SortSupport ssup = (SortSupport) PG_GETARG_POINTER(0);
	CfdCellOperand *operands = MemoryContextAlloc(ssup->ssup_cxt, 2 * sizeof(CfdCellOperand));

	operands[0] = operands[1] = (CfdCellOperand) {.type = type,.is_cell = true};
	ssup->ssup_extra = operands;
	ssup->comparator = compare_in_sort;
	PG_RETURN_VOID();
}

const CfdCellOperand *
cfd_cell_operands(FmgrInfo *flinfo)
{
	CfdCellOperand *operands = flinfo->fn_extra;
	HeapTuple	tuple;
	Form_pg_proc form;

	if (operands != NULL)
		return operands;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(flinfo->fn_oid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", flinfo->fn_oid);
	form = (Form_pg_proc) GETSTRUCT(tuple);
	operands = MemoryContextAlloc(flinfo->fn_mcxt, 2 * sizeof(CfdCellOperand));
	for (int i = 0; i < 2; i++)
	{
		Oid			type = form->proargtypes.values[Min(i, form->pronargs - 1)];

		operands[i].type = cfd_cell_code(type);
		operands[i].is_cell = operands[i].type != 0;
		if (!operands[i].is_cell)
			operands[i].type = cfd_type_code(type);
	}
	ReleaseSysCache(tuple);
	flinfo->fn_extra = operands;
	return operands;
}

static int
cell_compared(FunctionCallInfo fcinfo, uint8 flags)
{
	const CfdCellOperand *operands = cfd_cell_operands(fcinfo->flinfo);
	Datum		values[2];

	for (int i = 0; i < 2; i++)
		values[i] = operands[i].is_cell ? PointerGetDatum(CELL_ARG(i)) : PG_GETARG_DATUM(i);
	return cfd_cell_compare(operands, values[0], values[1], flags);
}

#define FUNCTION(name, call) \
	PG_FUNCTION_INFO_V1(cfd_##name); \
	Datum cfd_##name(PG_FUNCTION_ARGS) { return call; }

#define TEST(name, condition) \
	PG_FUNCTION_INFO_V1(cfd_cell_##name); \
	Datum cfd_cell_##name(PG_FUNCTION_ARGS) \
	{ \
		int			order = cell_compared(fcinfo, 0); \
		if (order == CFD_NULL_RESULT) \
			PG_RETURN_NULL(); \
		PG_RETURN_BOOL(condition); \
	}

TEST(lt, order < 0)
TEST(le, order <= 0)
TEST(eq, order == 0)
TEST(ge, order >= 0)
TEST(gt, order > 0)
TEST(ne, order != 0)
FUNCTION(cell_cmp, Int32GetDatum(cell_compared(fcinfo, CFD_CELL_FOR_INDEX)))

static uint64
cell_hash(FunctionCallInfo fcinfo)
{
	CfdWireCellHash body = {.t = cfd_cell_operands(fcinfo->flinfo)->type};
	struct varlena *cell = CELL_ARG(0);
	CfdReadCellHashAnswer read;
	const char *answer;
	uint32		length;

	cfd_begin();
	answer = cfd_call(CFD_KIND_CELL_HASH, &body, sizeof(body), VARDATA_ANY(cell), VARSIZE_ANY_EXHDR(cell), &length);
	CFD_DECODE(cell_hash_answer, answer, length, &read);
	return read.head.hash;
}

FUNCTION(cell_hash, UInt32GetDatum((uint32) cell_hash(fcinfo)))

PG_FUNCTION_INFO_V1(cfd_cell_hash_extended);
Datum
cfd_cell_hash_extended(PG_FUNCTION_ARGS)
{
	uint64		hash = cell_hash(fcinfo);
	uint64		seed = (uint64) PG_GETARG_INT64(1);

	/* PostgreSQL requires that with seed 0 the lower half equals the unseeded hash. */
	PG_RETURN_UINT64(seed == 0 ? hash : hash_combine64(hash, seed));
}

/* ---------- statistics ---------- */

/* Computes the fraction of NULLs and the average width. Compares nothing. */
static void
compute_widths(VacAttrStats *stats, AnalyzeAttrFetchFunc fetch, int rows, double total)
{
	double		width = 0;
	int			nulls = 0;

	for (int i = 0; i < rows; i++)
	{
		bool		isnull;
		Datum		value = fetch(stats, i, &isnull);

		CFD_DELAY_POINT(true);
		if (isnull)
			nulls++;
		else
			width += VARSIZE_ANY(DatumGetPointer(value));
	}
	if (rows == 0)
		return;
	stats->stats_valid = true;
	stats->stanullfrac = (double) nulls / rows;
	stats->stawidth = nulls < rows ? width / (rows - nulls) : 0;
	stats->stadistinct = 0;
}

PG_FUNCTION_INFO_V1(cfd_cell_analyze);
Datum
cfd_cell_analyze(PG_FUNCTION_ARGS)
{
	VacAttrStats *stats = (VacAttrStats *) PG_GETARG_POINTER(0);

	if (CFD_STATISTICS_TARGET(stats) < 0)
		CFD_STATISTICS_TARGET(stats) = default_statistics_target;
	stats->compute_stats = compute_widths;
	stats->minrows = 300 * CFD_STATISTICS_TARGET(stats);
	PG_RETURN_BOOL(true);
}

/* ---------- functions of each type ---------- */

static Datum
opened(FunctionCallInfo fcinfo, uint8 type, uint16 cast)
{
	CfdFid		fid = cfd_cell_open(fcinfo->flinfo, CELL_ARG(0), type);

	if (cast != 0)
		fid = cfd_evaluate_fid(NULL, cast, 0, &fid, 1);
	return UInt64GetDatum(fid);
}

#define CFD_CELL_TYPE(name, type, assignment, explicit_cast) \
	static const Kind kind_##name = {type, assignment, explicit_cast}; \
	static Datum enc_in_##name(PG_FUNCTION_ARGS) { return cfd_type_in(fcinfo, type); } \
	static Datum enc_recv_##name(PG_FUNCTION_ARGS) { return cfd_type_recv(fcinfo, type); } \
	static Datum enc_out_##name(PG_FUNCTION_ARGS) { return cfd_type_out(fcinfo, type); } \
	static Datum enc_send_##name(PG_FUNCTION_ARGS) { return cfd_type_send(fcinfo, type); } \
	FUNCTION(cell_in_##name, cell_in(fcinfo, &kind_##name, enc_in_##name)) \
	FUNCTION(cell_recv_##name, cell_recv(fcinfo, &kind_##name, enc_recv_##name)) \
	FUNCTION(cell_out_##name, cell_out(fcinfo, type, enc_out_##name)) \
	FUNCTION(cell_send_##name, cell_send(fcinfo, type, enc_send_##name)) \
	FUNCTION(cell_typmod_in_##name, typmod_in(fcinfo, type)) \
	FUNCTION(cell_typmod_out_##name, typmod_out(fcinfo, type)) \
	FUNCTION(cell_sort_##name, sort_support(fcinfo, type)) \
	FUNCTION(cell_open_##name, opened(fcinfo, type, 0)) \
	FUNCTION(cell_seal_##name, from_enc(fcinfo, &kind_##name, 0)) \
	FUNCTION(cell_fit_##name, fit(fcinfo, &kind_##name))
#define CFD_CELL_CAST(from, from_type, to, signature) \
	FUNCTION(cell_open_##from##_to_##to, opened(fcinfo, from_type, signature)) \
	FUNCTION(cell_seal_##from##_to_##to, from_enc(fcinfo, &kind_##to, signature)) \
	FUNCTION(cell_turn_##from##_to_##to, from_cell(fcinfo, from_type, &kind_##to, signature))
#define CFD_CELL_PLAIN(from, from_type, to, signature) \
	FUNCTION(cell_from_##from##_to_##to, from_plain(fcinfo, &kind_##to, from_type, signature))

#include "generated/cells.inc"
