/*
 * cell.h
 *	  Values of the family rnd_: cells, which are stored in rows as
 *	  ciphertext (docs/families.md).
 *
 * This room knows the layout of cells (crates/contract/src/cell.rs), but not
 * their contents: only the keeper opens and seals them. A *sealed* cell
 * contains the ciphertext; of a column rnd_...(det), type rnd_det_..., also a
 * token, by which cells are compared here. A *loose* cell contains the FID of a temporary
 * value.
 *
 * Invariant: what is stored in a column is sealed for that column; a loose
 * cell lives only as long as the temporary value that it names.
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
	int32		modifier;		/* type modifier in terms of the plain type; -1: none */
	bool		token;			/* whether its cells have tokens */
	int			length;			/* length of the names */
	char	   *names;			/* schema, relation, column, each zero-terminated */
	bool		known;			/* whether what follows is set */
	unsigned char identity[CFD_CELL_COLUMN_BYTES];
	/* Generation of its key, when it was last heard of. */
	unsigned char generation[CFD_CELL_GENERATION_BYTES];
} CfdCellColumn;

/* types.c: code of a type rnd_..., or 0; whether a type contains such a type. */
extern uint8 cfd_cell_code(Oid type);
extern bool cfd_cell_contains(Oid type);
/* Whether it is a type rnd_det_..., whose cells have tokens. */
extern bool cfd_cell_has_token(Oid type);
/* The same for the types of both families, enc_ and rnd_. */
extern uint8 cfd_family_code(Oid type);
extern bool cfd_family_contains(Oid type);

/* columns.c: numbers of columns, which are part of their type modifiers. */
static inline bool
cfd_cell_numbered(int32 typmod)
{
	return typmod >= 0 && (typmod & CFD_CELL_NUMBERED) != 0;
}

/*
 * Allocates a number for a column of a relation, given its plain modifier.
 * Returns the new modifier.
 */
extern int32 cfd_cell_new_number(Oid relation, int32 modifier);
/*
 * The relation that a number belongs to, or InvalidOid. Sets *modifier to the
 * plain modifier.
 */
extern Oid	cfd_cell_relation(int32 typmod, int32 *modifier);
/* Number of columns of a relation, including dropped ones. */
extern int	cfd_cell_natts(Oid relation);
/* The column with this number. Valid until the next catalog change. */
extern CfdCellColumn *cfd_cell_column(int32 typmod);

/* cell.c */
/* FID of a cell's value. For a sealed cell it is a new temporary value. */
extern CfdFid cfd_cell_open(FmgrInfo *flinfo, struct varlena *cell, uint8 type);
/* The same for any bytes that the keeper opens. */
extern CfdFid cfd_cell_open_bytes(const void *bytes, uint32 length, uint8 type);
extern struct varlena *cfd_cell_loose(CfdFid fid);
/*
 * Seals a value. Returns NULL for a NULL value. Column NULL: a constant in a
 * definition.
 */
extern struct varlena *cfd_cell_seal(CfdFid fid, uint8 type, CfdCellColumn *column);
extern bool cfd_cell_is_sealed(const struct varlena *cell);
/* The token of a cell, or NULL. */
extern const uint8 *cfd_cell_token(const struct varlena *cell);
/* Raises an error unless the bytes are a cell of the type. */
extern void cfd_cell_check(const struct varlena *cell, uint8 type);

/* The running statement builds indexes, and comparisons are made for these. */
extern bool cfd_cell_building;

/* An operand of a comparison. */
typedef struct CfdCellOperand
{
	uint8		type;
	bool		is_cell;		/* otherwise a FID */
} CfdCellOperand;

/* For ANALYZE: computes the fraction of NULLs and the average width only. */
extern Datum cfd_cell_analyze(PG_FUNCTION_ARGS);

/* functions.c: by whose addresses comparisons of cells are known. */
extern Datum cfd_cell_lt(PG_FUNCTION_ARGS);
extern Datum cfd_cell_le(PG_FUNCTION_ARGS);
extern Datum cfd_cell_eq(PG_FUNCTION_ARGS);
extern Datum cfd_cell_ge(PG_FUNCTION_ARGS);
extern Datum cfd_cell_gt(PG_FUNCTION_ARGS);
extern Datum cfd_cell_ne(PG_FUNCTION_ARGS);

/* Operand types of a comparison function, looked up at its first call. */
extern const CfdCellOperand *cfd_cell_operands(FmgrInfo *flinfo);

extern int	cfd_cell_compare(const CfdCellOperand operands[2], Datum a, Datum b, uint8 flags);

#endif
