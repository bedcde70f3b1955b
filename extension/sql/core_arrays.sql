
-- core_arrays.sql
--   Arrays of protected values.
--   Invariant: an array in a column is stored in its row, as it is, where garbage collection finds
--   its elements' identifiers; its statistics, which would hold such arrays, are not made.

-- ALTER TYPE does not take arrays.
UPDATE pg_catalog.pg_type a SET typstorage = 'p', typanalyze = 'pg_catalog.enc_typanalyze'::regproc
	FROM pg_catalog.pg_type e
	WHERE a.oid = e.typarray AND e.typanalyze = 'pg_catalog.enc_typanalyze'::regproc;
