/*
 * cell.h
 *	  Values of the family rnd_: cells, which stand in rows as ciphertext
 *	  (docs/families.md).
 *
 * Knows the form of cells (crates/contract/src/cell.rs), not what is in them: only the
 * keeper opens and seals.
 *
 * Invariant: what is stored in a column is sealed for that column; a loose cell is as
 * short-lived as the temporary value that it names.
 */
#ifndef CFD_CELL_CELL_H
#define CFD_CELL_CELL_H

#include "postgres.h"
#include "fmgr.h"
#include "wire/wire.h"

/* A column that cells are sealed for. */
typedef struct CfdCellColumn
{
	uint32		number;
	int32		modifier;		/* what the plain type's modifier is; -1: none */
	int			length;			/* of the names */
	char	   *names;			/* schema, relation, column, each with its zero byte */
	bool		known;			/* whether the identity is known */
	unsigned char identity[CFD_CELL_COLUMN_BYTES];
} CfdCellColumn;

/* types.c: code of a type rnd_..., 0 for any other; whether a type contains one. */
extern uint8 cfd_cell_code(Oid type);
extern bool cfd_cell_contains(Oid type);
/* The same for types of either family. */
extern uint8 cfd_family_code(Oid type);
extern bool cfd_family_contains(Oid type);

/* columns.c: numbers of columns, which their type modifiers have. */
static inline bool
cfd_cell_numbered(int32 typmod)
{
	return typmod >= 0 && (typmod & CFD_CELL_NUMBERED) != 0;
}

/* A new number, for a column of a relation whose plain modifier is this; as a modifier. */
extern int32 cfd_cell_new_number(Oid relation, int32 modifier);
/* The relation that a number is of; InvalidOid for none. */
extern Oid	cfd_cell_relation(int32 typmod, int32 *modifier);
/* How many columns a relation has, with those that were dropped. */
extern int	cfd_cell_natts(Oid relation);
/* The column with a number; valid until catalogs change. */
extern CfdCellColumn *cfd_cell_column(int32 typmod);

/* cell.c */
/* The FID of what is in a cell: a new one, if it is sealed. */
extern CfdFid cfd_cell_open(FmgrInfo *flinfo, struct varlena *cell, uint8 type);
extern struct varlena *cfd_cell_loose(CfdFid fid);
/* A sealed cell; NULL for NULL. Column NULL: a constant of a definition. */
extern struct varlena *cfd_cell_seal(CfdFid fid, uint8 type, CfdCellColumn *column);
extern bool cfd_cell_is_sealed(const struct varlena *cell);
/* Raises an error for what is no cell of a type. */
extern void cfd_cell_check(const struct varlena *cell, uint8 type);

/* A statement runs that builds indexes: comparisons are for these. */
extern bool cfd_cell_building;

/* What a comparison compares. */
typedef struct CfdCellOperand
{
	uint8		type;
	bool		is_cell;		/* or a FID */
} CfdCellOperand;

/* For ANALYZE: how many are NULL, and how wide the others. */
extern Datum cfd_cell_analyze(PG_FUNCTION_ARGS);

extern int	cfd_cell_compare(const CfdCellOperand operands[2], Datum a, Datum b, uint8 flags);

#endif
