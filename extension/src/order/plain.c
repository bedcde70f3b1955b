/*
 * plain.c
 *	  Plain sort keys beside protected ones; see plain.h.
 *
 * Invariant: as in plain.h.
 */
#include "postgres.h"

#include "access/transam.h"
#include "order/plain.h"
#include "catalog/pg_type.h"

bool
cfd_plain_key(Oid type)
{
	switch (type)
	{
		case BOOLOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return true;
		default:
			return false;
	}
}

/* PostgreSQL has one built-in order for each of these types. */
bool
cfd_plain_order(Oid type, Oid family)
{
	return cfd_plain_key(type) && family < FirstNormalObjectId;
}

uint64
cfd_plain_number(Datum value, Oid type)
{
	int64		number;

	switch (type)
	{
		case BOOLOID:
			number = DatumGetBool(value);
			break;
		case INT2OID:
			number = DatumGetInt16(value);
			break;
		case INT4OID:
		case DATEOID:
			number = DatumGetInt32(value);
			break;
		case OIDOID:
			number = (int64) DatumGetObjectId(value);
			break;
		default:
			number = DatumGetInt64(value);
			break;
	}
	return (uint64) number ^ (UINT64CONST(1) << 63);
}
