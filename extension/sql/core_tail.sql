
-- core_tail.sql
--   The access method, and what people call: schema confide.
--   Invariant: what costs or tells something is not for PUBLIC.

CREATE FUNCTION pg_catalog.confide_tableam_handler(internal) RETURNS table_am_handler
	AS 'MODULE_PATHNAME', 'cfd_tableam_handler' LANGUAGE C STRICT;
CREATE ACCESS METHOD confide TYPE TABLE HANDLER pg_catalog.confide_tableam_handler;
COMMENT ON ACCESS METHOD confide IS 'heap tables whose protected columns hold identifiers of values in the keeper';

CREATE SCHEMA confide;
COMMENT ON SCHEMA confide IS 'functions and views of Confide';
GRANT USAGE ON SCHEMA confide TO PUBLIC;

CREATE FUNCTION confide.handshake(step int4, message bytea) RETURNS bytea
	AS 'MODULE_PATHNAME', 'cfd_handshake' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.handshake(int4, bytea) IS
	'passes one message of a client''s key exchange to the keeper and gives its answer';

CREATE PROCEDURE confide.policy(command text)
	AS 'MODULE_PATHNAME', 'cfd_policy' LANGUAGE C;
COMMENT ON PROCEDURE confide.policy(text) IS
	'passes on what a client says of who sees a column: GRANT VIEWER and its like, through the proxy';

CREATE FUNCTION confide.is_true(pg_catalog.enc_bool) RETURNS bool
	AS 'MODULE_PATHNAME', 'cfd_istrue_bool' LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE COST 16;
COMMENT ON FUNCTION confide.is_true(pg_catalog.enc_bool) IS
	'declassifies a protected boolean, for WHERE and the like';

CREATE FUNCTION confide.extension_version() RETURNS text
	AS 'MODULE_PATHNAME', 'cfd_version' LANGUAGE C STRICT STABLE PARALLEL SAFE;
COMMENT ON FUNCTION confide.extension_version() IS 'version of the extension and of the contract with the keeper';

CREATE FUNCTION confide.stat_keeper(OUT name text, OUT value text) RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'cfd_stat_keeper' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION confide.stat_keeper() IS 'counters of the keeper and of this session';
CREATE VIEW confide.confide_stat_keeper AS SELECT name, value FROM confide.stat_keeper();

CREATE FUNCTION confide.stat_soft_mode(OUT name text, OUT value text) RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'cfd_stat_soft_mode' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION confide.stat_soft_mode() IS
	'costs and decisions of this session for comparisons of encoded columns (confide.soft_mode)';
CREATE VIEW confide.confide_stat_soft_mode AS SELECT name, value FROM confide.stat_soft_mode();
GRANT SELECT ON confide.confide_stat_soft_mode TO PUBLIC;

CREATE FUNCTION confide.stat_leakage(OUT principal text, OUT schema_name text, OUT table_name text, OUT column_name text,
	OUT booleans int8, OUT orders int8, OUT ranks int8, OUT tokens int8, OUT shown int8) RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'cfd_stat_leakage' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION confide.stat_leakage() IS 'what the keeper has told of each column, and to which principal';
CREATE VIEW confide.confide_stat_leakage AS SELECT * FROM confide.stat_leakage();
CREATE FUNCTION confide.leakage_report(words pg_catalog.enc_text) RETURNS pg_catalog.enc_text
	AS 'MODULE_PATHNAME', 'cfd_leakage_report' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION confide.leakage_report(pg_catalog.enc_text) IS
	'the same of the columns that the client may ask about, under its key, behind words of its own';

CREATE FUNCTION confide.signed_result(query text, statement pg_catalog.enc_text, nonce pg_catalog.enc_bytea)
	RETURNS pg_catalog.enc_text
	AS 'MODULE_PATHNAME', 'cfd_signed_result' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.signed_result(text, pg_catalog.enc_text, pg_catalog.enc_bytea) IS
	'a query''s result with the keeper''s signature; for SELECT ... WITH SIGNATURE';

-- What a statement runs besides its own text, as it would be written down: for the owner to read
-- and, through the proxy, to authorise.
CREATE FUNCTION confide.definitions(of regnamespace, OUT name text, OUT definition text)
	RETURNS SETOF record LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
	SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	WITH relation AS (
		SELECT c.oid, c.relkind, c.relpartbound, format('%I.%I', n.nspname, c.relname) AS name
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.oid = of
	)
	SELECT 'inheritance of ' || r.name, CASE WHEN r.relpartbound IS NULL
			THEN format('ALTER TABLE %s INHERIT %I.%I', r.name, n.nspname, p.relname)
			ELSE format('ALTER TABLE %I.%I ATTACH PARTITION %s %s', n.nspname, p.relname, r.name,
				pg_get_expr(r.relpartbound, r.oid)) END
	FROM relation r JOIN pg_inherits i ON i.inhrelid = r.oid JOIN pg_class p ON p.oid = i.inhparent
		JOIN pg_namespace n ON n.oid = p.relnamespace WHERE r.relkind IN ('r', 'p')
	UNION ALL
	SELECT format('routine %s', p.oid::regprocedure), pg_get_functiondef(p.oid)
	FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
	WHERE p.pronamespace = of AND p.prokind IN ('f', 'p') AND l.lanname NOT IN ('c', 'internal')
	UNION ALL
	SELECT format('default of %s.%I', r.name, a.attname), CASE a.attgenerated
			WHEN '' THEN format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', r.name, a.attname,
				pg_get_expr(d.adbin, d.adrelid))
			ELSE format('ALTER TABLE %s ADD COLUMN %I %s GENERATED ALWAYS AS (%s) STORED', r.name, a.attname,
				format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid)) END
	FROM relation r JOIN pg_attrdef d ON d.adrelid = r.oid
		JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = d.adnum
	UNION ALL
	SELECT format('constraint %I of %s', c.conname, r.name),
		format('ALTER TABLE %s ADD CONSTRAINT %I %s', r.name, c.conname, pg_get_constraintdef(c.oid))
	FROM relation r JOIN pg_constraint c ON c.conrelid = r.oid WHERE c.contype IN ('c', 'f')
	UNION ALL
	SELECT format('index of %s', r.name), pg_get_indexdef(i.indexrelid)
	FROM relation r JOIN pg_index i ON i.indrelid = r.oid WHERE i.indpred IS NOT NULL OR i.indexprs IS NOT NULL
	UNION ALL
	SELECT format('trigger %I of %s', t.tgname, r.name), pg_get_triggerdef(t.oid)
	FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid WHERE NOT t.tgisinternal
	UNION ALL
	SELECT format('policy %I of %s', p.polname, r.name), format('CREATE POLICY %I ON %s', p.polname, r.name)
		|| coalesce(' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', '')
		|| coalesce(' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '')
	FROM relation r JOIN pg_policy p ON p.polrelid = r.oid
	UNION ALL
	SELECT format('rule %I of %s', w.rulename, r.name), pg_get_ruledef(w.oid)
	FROM relation r JOIN pg_rewrite w ON w.ev_class = r.oid WHERE w.rulename <> '_RETURN'
	UNION ALL
	SELECT CASE r.relkind WHEN 'v' THEN 'view ' ELSE 'materialized view ' END || r.name,
		format('CREATE %sVIEW %s AS %s', CASE r.relkind WHEN 'm' THEN 'MATERIALIZED ' END, r.name,
			pg_get_viewdef(r.oid))
	FROM relation r WHERE r.relkind IN ('v', 'm');
END;
COMMENT ON FUNCTION confide.definitions(regnamespace) IS
	'what statements run besides their own text in a schema; for confide.authorise';

CREATE FUNCTION confide.authorise(entries int4) RETURNS int4
	AS 'MODULE_PATHNAME', 'cfd_authorised' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.authorise(int4) IS
	'what the proxy makes of confide.authorise(text): how many entries the client has authorised';
CREATE FUNCTION confide.authorise(definition text) RETURNS int4
	AS 'MODULE_PATHNAME', 'cfd_authorise_without_proxy' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.authorise(text) IS 'authorises a definition that is there already; through the proxy';

CREATE FUNCTION confide.verify(target regclass, OUT place text, OUT name text,
		OUT fids int8, OUT unresolved int8) RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'cfd_verify' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.verify(regclass) IS
	'counts the identifiers in a table, its indexes and statistics, and those that name nothing';

CREATE FUNCTION confide.checkpoint() RETURNS pg_lsn
	AS 'MODULE_PATHNAME', 'cfd_checkpoint' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.checkpoint() IS 'has the keeper make a checkpoint now';
CREATE FUNCTION confide.stat_recovery(OUT state text, OUT reason text, OUT store text,
	OUT checkpoint_lsn pg_lsn, OUT checkpoint_time timestamptz, OUT checkpoints int8,
	OUT failures int8, OUT applied_lsn pg_lsn, OUT wal_bytes int8)
	AS 'MODULE_PATHNAME', 'cfd_stat_recovery' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.stat_recovery() IS 'how the keeper stands to this cluster''s WAL';
CREATE FUNCTION confide.store_copy(OUT number int4, OUT name text, OUT length int8,
	OUT checkpoint_lsn pg_lsn, OUT timeline int4) RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'cfd_store_copy' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.store_copy() IS
	'begins a copy of the keeper''s sealed files in this session; for "confide backup"';
CREATE FUNCTION confide.store_read(number int4, at int8) RETURNS bytea
	AS 'MODULE_PATHNAME', 'cfd_store_read' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.store_read(int4, int8) IS
	'a part of a file of the copy, at most a MB; for "confide backup"';
CREATE VIEW confide.confide_stat_recovery AS
	SELECT r.*, s.restart_lsn AS slot_lsn, s.wal_status AS slot_status, s.safe_wal_size
	FROM confide.stat_recovery() r
	LEFT JOIN pg_catalog.pg_replication_slots s ON s.slot_name = 'confide';

CREATE FUNCTION confide.gc(target regclass, OUT name text, OUT found int8, OUT swept int8,
		OUT postponed text) RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'cfd_gc_table' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.gc(regclass) IS
	'frees values of a table in the keeper that nothing names any more';
CREATE FUNCTION confide.gc(OUT relation oid, OUT swept int8, OUT postponed text) RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'cfd_gc_orphans' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.gc() IS 'frees values in the keeper of tables and databases that do not exist any more';
CREATE FUNCTION confide.stat_progress_gc(OUT pid int4, OUT datid oid, OUT relid oid, OUT phase text,
		OUT pages_total int8, OUT pages_done int8, OUT identifiers_found int8, OUT values_swept int8)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'cfd_stat_progress_gc' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
CREATE VIEW confide.confide_stat_progress_gc AS
	SELECT p.pid, p.datid, d.datname, p.relid, p.phase, p.pages_total, p.pages_done,
		p.identifiers_found, p.values_swept
	FROM confide.stat_progress_gc() p LEFT JOIN pg_catalog.pg_database d ON d.oid = p.datid;
GRANT SELECT ON confide.confide_stat_progress_gc TO PUBLIC;

-- By whoever may end sessions, but for superusers' own; in execution mode only.
CREATE FUNCTION confide.end_superusers() RETURNS int8
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $$
	SELECT count(*) FILTER (WHERE pg_terminate_backend(s.pid)) FROM pg_stat_activity s
	WHERE current_setting('confide.mode') = 'execution'
		AND s.backend_type IN ('client backend', 'walsender')
		AND EXISTS (SELECT FROM pg_roles r WHERE (r.rolsuper OR r.rolcreaterole
			OR r.rolname IN ('pg_write_server_files', 'pg_execute_server_program'))
			AND pg_has_role(s.usesysid, r.oid, 'MEMBER'))
$$;
COMMENT ON FUNCTION confide.end_superusers() IS
	'in execution mode, ends the sessions of superusers and of roles that can become one';
REVOKE ALL ON FUNCTION confide.end_superusers() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION confide.end_superusers() TO pg_signal_backend;

CREATE FUNCTION confide.bench_answered(n int8) RETURNS float8
	AS 'MODULE_PATHNAME', 'cfd_bench_answered' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.bench_answered(int8) IS 'nanoseconds of a round trip to the keeper';
CREATE FUNCTION confide.bench_oneway(n int8) RETURNS float8
	AS 'MODULE_PATHNAME', 'cfd_bench_oneway' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION confide.bench_oneway(int8) IS 'nanoseconds that the backend spends on a one-way message';

REVOKE ALL ON FUNCTION confide.gc(), confide.stat_keeper(), confide.stat_leakage(), confide.stat_recovery(), confide.checkpoint(),
	confide.store_copy(), confide.store_read(int4, int8), confide.bench_answered(int8),
	confide.bench_oneway(int8) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION confide.stat_keeper(), confide.stat_leakage(), confide.stat_recovery() TO pg_monitor;
GRANT EXECUTE ON FUNCTION confide.checkpoint() TO pg_checkpoint;
REVOKE ALL ON confide.confide_stat_keeper, confide.confide_stat_leakage, confide.confide_stat_recovery FROM PUBLIC;
GRANT SELECT ON confide.confide_stat_keeper, confide.confide_stat_leakage, confide.confide_stat_recovery TO pg_monitor;
