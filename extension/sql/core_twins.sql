
-- core_twins.sql
--   The catalogs as tools know them: protected types appear as their plain twins. The proxy names
--   these instead of PostgreSQL's own where its setting plain_catalogs says so.
--   Invariant: they show nothing that the catalogs do not; who may read those may read these.

CREATE FUNCTION confide.pg_typeof(regtype) RETURNS regtype
LANGUAGE sql STABLE STRICT PARALLEL SAFE AS $body$
	SELECT coalesce((SELECT p.oid::pg_catalog.regtype
		FROM pg_catalog.pg_type t JOIN pg_catalog.pg_type p ON p.typnamespace OPERATOR(pg_catalog.=) t.typnamespace
			AND p.typname OPERATOR(pg_catalog.=) pg_catalog.regexp_replace(t.typname, '^(_?)(enc|rnd|soft)_', '\1')
		WHERE t.oid OPERATOR(pg_catalog.=) $1 AND t.typnamespace OPERATOR(pg_catalog.=) 11
			AND t.typname OPERATOR(pg_catalog.~) '^_?(enc|rnd|soft)_'), $1)
$body$;
COMMENT ON FUNCTION confide.pg_typeof(regtype) IS 'the plain twin of a protected type, and any other type itself; named as what it is called with';

-- Dropped columns have type 0.
DO $do$
DECLARE
	shown text;
	part text[];
	replaced text;
BEGIN
	SELECT string_agg(CASE attname
		WHEN 'atttypid' THEN 'coalesce(p.oid, a.atttypid) AS atttypid'
		WHEN 'attlen' THEN 'coalesce(p.typlen, a.attlen) AS attlen'
		WHEN 'attbyval' THEN 'coalesce(p.typbyval, a.attbyval) AS attbyval'
		WHEN 'attalign' THEN 'coalesce(p.typalign, a.attalign) AS attalign'
		WHEN 'attstorage' THEN 'coalesce(p.typstorage, a.attstorage) AS attstorage'
		WHEN 'attcollation' THEN 'coalesce(p.typcollation, a.attcollation) AS attcollation'
		WHEN 'attmissingval' THEN 'a.attmissingval::text::text[] AS attmissingval'
		ELSE format('a.%I', attname) END, ', ' ORDER BY attnum)
	INTO shown FROM pg_catalog.pg_attribute WHERE attrelid = 'pg_catalog.pg_attribute'::regclass AND attnum > 0;
	EXECUTE format('CREATE VIEW confide.pg_attribute AS SELECT %s FROM pg_catalog.pg_attribute a '
		'LEFT JOIN pg_catalog.pg_type t ON t.oid = a.atttypid AND t.typnamespace = 11 AND t.typname ~ ''^_?(enc|rnd|soft)_'' '
		'LEFT JOIN pg_catalog.pg_type p ON p.typnamespace = 11 AND p.typname = regexp_replace(t.typname, ''^(_?)(enc|rnd|soft)_'', ''\1'')',
		shown);
	-- What domains are over.
	SELECT string_agg(CASE attname WHEN 'typbasetype' THEN 'coalesce(p.oid, d.typbasetype) AS typbasetype'
		ELSE format('d.%I', attname) END, ', ' ORDER BY attnum)
	INTO shown FROM pg_catalog.pg_attribute WHERE attrelid = 'pg_catalog.pg_type'::regclass AND attnum > 0;
	EXECUTE format('CREATE VIEW confide.pg_type AS SELECT %s FROM pg_catalog.pg_type d '
		'LEFT JOIN pg_catalog.pg_type t ON t.oid = d.typbasetype AND t.typnamespace = 11 AND t.typname ~ ''^enc_'' '
		'LEFT JOIN pg_catalog.pg_type p ON p.typnamespace = 11 AND p.typname = substr(t.typname, strpos(t.typname, ''_'') + 1)',
		shown);
	-- PostgreSQL's own view over ours. Its helpers take rows of the catalog.
	shown := pg_get_viewdef('information_schema.columns'::regclass);
	FOREACH part SLICE 1 IN ARRAY ARRAY[
		['pg_attribute a', 'confide.pg_attribute a'],
		['pg_type t', 'confide.pg_type t'],
		['information_schema._pg_truetypid(a.*, t.*)', 'CASE WHEN t.typtype = ''d'' THEN t.typbasetype ELSE a.atttypid END'],
		['information_schema._pg_truetypmod(a.*, t.*)', 'CASE WHEN t.typtype = ''d'' THEN t.typtypmod ELSE a.atttypmod END']]
	LOOP
		replaced := replace(shown, part[1], part[2]);
		IF replaced = shown THEN
			RAISE EXCEPTION 'information_schema.columns is not as expected: "%" is missing', part[1];
		END IF;
		shown := replaced;
	END LOOP;
	EXECUTE 'CREATE VIEW confide.columns AS ' || shown;
END
$do$;
COMMENT ON VIEW confide.pg_attribute IS 'pg_catalog.pg_attribute with the plain twins of protected types';
COMMENT ON VIEW confide.pg_type IS 'pg_catalog.pg_type with domains over the plain twins of protected types';
COMMENT ON VIEW confide.columns IS 'information_schema.columns with the plain twins of protected types';
GRANT SELECT ON confide.pg_attribute, confide.pg_type, confide.columns TO PUBLIC;
