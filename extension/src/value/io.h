/*
 * io.h
 *	  Input and output of protected types: envelopes in, envelopes out.
 *
 * Does not open envelopes: only keeper and client can.
 *
 * Invariant: no text that came in appears in an error.
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
