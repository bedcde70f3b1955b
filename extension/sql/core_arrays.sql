
-- core_arrays.sql
--   Arrays of protected values.
--   Invariant: an array in a column is stored in its row, as it is, where garbage collection finds
--   its elements' identifiers; there are no statistics of arrays, which would hold others.

CREATE FUNCTION pg_catalog.enc_array_out(anyarray) RETURNS cstring
	AS 'MODULE_PATHNAME', 'cfd_array_out' LANGUAGE C STRICT STABLE PARALLEL SAFE COST 32;

-- ALTER TYPE does not take types of arrays.
UPDATE pg_catalog.pg_type a SET typstorage = 'p', typanalyze = 'pg_catalog.enc_typanalyze'::regproc,
	typoutput = 'pg_catalog.enc_array_out'::regproc
	FROM pg_catalog.pg_type e
	WHERE a.oid = e.typarray AND e.typanalyze = 'pg_catalog.enc_typanalyze'::regproc;
