-- core_cells.sql
--   Columns of the family rnd_ (docs/families.md): what the numbers in their type modifiers are of,
--   and the functions that seal their cells under a new key.
--   The table is not dumped: a restore gives its columns numbers of its own.
--   Invariant: hooks/cells.c alone writes it.

CREATE SEQUENCE confide.rnd_number AS int4 MAXVALUE 1073741823;
CREATE TABLE confide.rnd_column (number int4 PRIMARY KEY, relation oid NOT NULL, modifier int4 NOT NULL);
COMMENT ON TABLE confide.rnd_column IS 'internal: columns of the family rnd_, by the number in their type modifiers';
GRANT SELECT ON confide.rnd_column TO PUBLIC;

-- For "confide rotate-column" (docs/families.md).
CREATE FUNCTION confide.rotate_batch(relation regclass, attribute name, first int8, pages int4,
		OUT next int8, OUT resealed int8, OUT failed int8) RETURNS record
	AS 'MODULE_PATHNAME', 'cfd_rotate_batch' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.rotate_batch(regclass, name, int8, int4) IS
	'seals old cells of a column rnd_ in these pages under its new key';
CREATE FUNCTION confide.rotate_left(relation regclass, attribute name, OUT left_over int8, OUT highest int4)
	RETURNS record
	AS 'MODULE_PATHNAME', 'cfd_rotate_left' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.rotate_left(regclass, name) IS
	'number of rows with cells of a column rnd_ that are not under its present key, and the highest generation of these';
CREATE FUNCTION confide.rotate_announce(relation regclass) RETURNS void
	AS 'MODULE_PATHNAME', 'cfd_rotate_announce' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.rotate_announce(regclass) IS
	'makes all sessions ask the keeper again which keys the columns of a table have';
CREATE FUNCTION confide.rotate_snapshots(older xid8) RETURNS text
	AS 'MODULE_PATHNAME', 'cfd_rotate_snapshots' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.rotate_snapshots(xid8) IS
	'transactions of other sessions with snapshots that may be older than this';
