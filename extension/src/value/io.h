/*
 * io.h
 *	  Input and output of protected types as envelopes.
 *
 * Does not open envelopes; only the keeper and the client can.
 *
 * Invariant: an error never contains input text.
 */
#ifndef CFD_VALUE_IO_H
#define CFD_VALUE_IO_H

#include "postgres.h"
#include "wire/wire.h"
#include "fmgr.h"

extern Datum cfd_type_in(FunctionCallInfo fcinfo, uint8 type);
extern Datum cfd_type_out(FunctionCallInfo fcinfo, uint8 type);
extern Datum cfd_type_recv(FunctionCallInfo fcinfo, uint8 type);
extern Datum cfd_type_send(FunctionCallInfo fcinfo, uint8 type);

#endif
