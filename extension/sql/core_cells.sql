-- core_cells.sql
--   Which columns the numbers in type modifiers of the family rnd_ are of (docs/families.md).
--   Not dumped: a restore gives its columns numbers of its own.
--   Invariant: hooks/cells.c alone writes it.

CREATE SEQUENCE confide.rnd_number AS int4 MAXVALUE 1073741823;
CREATE TABLE confide.rnd_column (number int4 PRIMARY KEY, relation oid NOT NULL, modifier int4 NOT NULL);
COMMENT ON TABLE confide.rnd_column IS 'internal: columns of the family rnd_, by the number in their type modifiers';
GRANT SELECT ON confide.rnd_column TO PUBLIC;
