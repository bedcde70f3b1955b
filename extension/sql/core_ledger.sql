
-- core_ledger.sql
--   Ledger tables (docs/ledger.md): the types that make a table one, histories, reports, erasing.
--   Invariant: the functions here make nothing that their caller could not make by hand.

-- A column of one of these types makes its table a ledger table, or a history.
CREATE DOMAIN pg_catalog.ledger_sn AS int8;
COMMENT ON DOMAIN pg_catalog.ledger_sn IS 'number of a row version of a ledger table';
CREATE DOMAIN pg_catalog.ledger_past_sn AS int8;
COMMENT ON DOMAIN pg_catalog.ledger_past_sn IS 'number of a row version in the history of a ledger table';
CREATE SEQUENCE confide.ledger_numbers;
COMMENT ON SEQUENCE confide.ledger_numbers IS 'numbers of row versions of all ledger tables';

CREATE FUNCTION confide.ledger_report(target regclass, nonce pg_catalog.enc_bytea, old_size int8 DEFAULT 0,
	only_new bool DEFAULT false)
	RETURNS pg_catalog.enc_text
	AS 'MODULE_PATHNAME', 'cfd_ledger_report' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.ledger_report(regclass, pg_catalog.enc_bytea, int8, bool) IS
	'what is wrong with a ledger table, in a report that the keeper signs; for "confide verify table"';
CREATE FUNCTION confide.ledger_checkpoint(target regclass) RETURNS text
	AS 'MODULE_PATHNAME', 'cfd_ledger_checkpoint' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.ledger_checkpoint(regclass) IS 'size and root of a ledger table''s log, signed';
CREATE FUNCTION confide.ledger_consistency(target regclass, old_size int8) RETURNS text
	AS 'MODULE_PATHNAME', 'cfd_ledger_consistency' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.ledger_consistency(regclass, int8) IS
	'a checkpoint, and the proof that it goes on from an older size';
CREATE FUNCTION confide.ledger_inclusion(target regclass, number int8) RETURNS text
	AS 'MODULE_PATHNAME', 'cfd_ledger_inclusion' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.ledger_inclusion(regclass, int8) IS
	'a checkpoint, and the proof that a row version is in it';

CREATE FUNCTION confide.ledger_receipt(nonce pg_catalog.enc_bytea) RETURNS pg_catalog.enc_text
	AS 'MODULE_PATHNAME', 'cfd_ledger_receipt' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.ledger_receipt(pg_catalog.enc_bytea) IS
	'what the session''s last transaction wrote into ledger tables, signed, with proofs; once';

-- Stable, so that a statement calls it once, before its first row.
CREATE FUNCTION confide.ledger_erasing(history regclass, number int8, through bool) RETURNS bool
	AS 'MODULE_PATHNAME', 'cfd_ledger_erasing' LANGUAGE C STRICT STABLE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.ledger_erasing(regclass, int8, bool) IS
	'part of DELETE FROM a ledger table WHERE sn = n or sn <= n; not for other statements';

-- The history of a ledger table, the view of all versions, and their rights: what is missing of
-- them is made. Called after CREATE TABLE, ALTER TABLE and GRANT.
CREATE FUNCTION confide.ledger_complete(target regclass) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog SET client_min_messages = warning AS $body$
DECLARE
	home text;
	name text;
	past text;
	owned text := '';
	now_part text := '';
	past_part text := '';
	item record;
BEGIN
	SELECT n.nspname, c.relname INTO home, name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid = target;
	past := format('%I.%I', home, name || '_history');
	FOR item IN SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type,
			a.atttypid = 'ledger_sn'::regtype AS numbers,
			CASE WHEN a.attcollation <> t.typcollation THEN
				(SELECT format(' COLLATE %I.%I', cn.nspname, co.collname) FROM pg_collation co
					JOIN pg_namespace cn ON cn.oid = co.collnamespace WHERE co.oid = a.attcollation)
				ELSE '' END AS collation
		FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
		WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
	LOOP
		owned := owned || format('%I %s%s, ', item.attname,
			CASE WHEN item.numbers THEN 'ledger_past_sn NOT NULL' ELSE item.type END, item.collation);
		IF to_regclass(past) IS NOT NULL AND NOT EXISTS (SELECT FROM pg_attribute h
			WHERE h.attrelid = to_regclass(past) AND h.attname = item.attname AND NOT h.attisdropped)
		THEN
			EXECUTE format('ALTER TABLE %s ADD COLUMN %I %s%s', past, item.attname, item.type, item.collation);
		END IF;
		now_part := now_part || format(CASE WHEN item.numbers THEN '%I::int8, ' ELSE '%I, ' END, item.attname);
		past_part := past_part || format(CASE WHEN item.numbers THEN '%I::int8, ' ELSE '%I, ' END, item.attname);
		IF item.attname = 'by' THEN
			now_part := now_part || $$'infinity'::timestamptz AS valid_to, NULL::text AS ended_by, $$;
			past_part := past_part || 'valid_to, ended_by, ';
		END IF;
	END LOOP;
	-- Without a key: each would cost a version that is replaced more than anything else, and the log has the
	-- numbers once. Erasing is deleting, which publications refuse for tables without an identity.
	IF to_regclass(past) IS NULL THEN
		EXECUTE format('CREATE TABLE %s (%s valid_to timestamptz NOT NULL, ended_by text NOT NULL)', past, owned);
		EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', past);
	END IF;
	EXECUTE format('CREATE OR REPLACE VIEW %I.%I AS SELECT %s FROM ONLY %I.%I UNION ALL SELECT %s FROM ONLY %s',
		home, name || '_ledger', rtrim(now_part, ', '), home, name, rtrim(past_part, ', '), past);
	-- The same people may read all three. Who may erase versions the owner says, by DELETE on the history.
	FOR item IN SELECT DISTINCT c.relname, a.grantee FROM pg_class c, aclexplode(c.relacl) a
		WHERE c.relnamespace = home::regnamespace AND c.relname IN (name || '_history', name || '_ledger')
			AND a.grantee <> c.relowner
	LOOP
		EXECUTE format('REVOKE SELECT, INSERT, UPDATE, TRUNCATE, REFERENCES, TRIGGER ON %I.%I FROM %s', home, item.relname,
			CASE item.grantee WHEN 0 THEN 'PUBLIC' ELSE item.grantee::regrole::text END);
	END LOOP;
	FOR item IN SELECT a.grantee FROM pg_class c, aclexplode(c.relacl) a
		WHERE c.oid = target AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner
	LOOP
		EXECUTE format('GRANT SELECT ON %s, %I.%I TO %s', past, home, name || '_ledger',
			CASE item.grantee WHEN 0 THEN 'PUBLIC' ELSE item.grantee::regrole::text END);
	END LOOP;
END
$body$;
COMMENT ON FUNCTION confide.ledger_complete(regclass) IS
	'makes the history and the view of a ledger table, as far as they are missing';

-- Through the proxy confide.as_of(t, time) is a query over the view, not this function.
CREATE FUNCTION confide.as_of(row_type anyelement, at timestamptz) RETURNS SETOF anyelement
LANGUAGE plpgsql STABLE SET search_path = pg_catalog AS $body$
DECLARE
	home text;
	name text;
	wanted text;
BEGIN
	SELECT n.nspname, c.relname INTO home, name
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_type t ON t.typrelid = c.oid
		WHERE t.oid = pg_typeof(row_type) AND EXISTS (SELECT FROM pg_attribute a
			WHERE a.attrelid = c.oid AND a.atttypid = 'ledger_sn'::regtype);
	IF name IS NULL OR to_regclass(format('%I.%I', home, name || '_ledger')) IS NULL THEN
		RAISE EXCEPTION 'type % is not the row type of a ledger table', pg_typeof(row_type)
			USING ERRCODE = 'wrong_object_type', HINT = 'Write confide.as_of(NULL::table, time).';
	END IF;
	SELECT string_agg(format(CASE WHEN a.atttypid = 'ledger_sn'::regtype THEN '%I::ledger_sn' ELSE '%I' END, a.attname), ', ' ORDER BY a.attnum) INTO wanted
	FROM pg_attribute a JOIN pg_type t ON t.typrelid = a.attrelid
		WHERE t.oid = pg_typeof(row_type) AND a.attnum > 0 AND NOT a.attisdropped;
	RETURN QUERY EXECUTE format('SELECT %s FROM %I.%I WHERE valid_from <= $1 AND $1 < valid_to',
		wanted, home, name || '_ledger') USING at;
END
$body$;
COMMENT ON FUNCTION confide.as_of(anyelement, timestamptz) IS
	'rows of a ledger table as they were at a time; the first argument is NULL::table';

-- Who calls it is the table's owner (ledger/erase.c).
CREATE FUNCTION confide.ledger_note(target regclass, operation text, number int8, rows int8) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog SET client_min_messages = warning AS $body$
DECLARE
	audit text;
BEGIN
	SELECT format('%I.%I', n.nspname, c.relname || '_audit') INTO audit
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = target;
	IF to_regclass(audit) IS NULL THEN
		EXECUTE format('CREATE TABLE %s (operation text, number int8, rows int8) WITH (confide.ledger = on)', audit);
	END IF;
	EXECUTE format('INSERT INTO %s (operation, number, rows) VALUES ($1, $2, $3)', audit)
		USING operation, number, rows;
END
$body$;
COMMENT ON FUNCTION confide.ledger_note(regclass, text, int8, int8) IS 'writes the audit of a ledger table';

CREATE FUNCTION confide.ledger_erase(target regclass, number int8, through bool DEFAULT false) RETURNS int8
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog AS $body$
DECLARE
	name text;
	erased int8;
BEGIN
	SELECT format('%I.%I', n.nspname, c.relname) INTO name
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = target
			AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.atttypid = 'ledger_sn'::regtype);
	IF name IS NULL THEN
		RAISE EXCEPTION '"%" is not a ledger table', target USING ERRCODE = 'wrong_object_type';
	END IF;
	EXECUTE format('DELETE FROM ONLY %s WHERE sn %s $1', name, CASE WHEN through THEN '<=' ELSE '=' END) USING number;
	GET DIAGNOSTICS erased = ROW_COUNT;
	RETURN erased;
END
$body$;
COMMENT ON FUNCTION confide.ledger_erase(regclass, int8, bool) IS
	'erases a version of a ledger table''s history, or all up to a number; for whoever has DELETE on that';
-- Rows are numbered in the name of whoever writes them.
GRANT USAGE ON SEQUENCE confide.ledger_numbers TO PUBLIC;
