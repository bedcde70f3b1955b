--
-- Where protected columns live.
-- Mechanism: new tables with protected columns get the access method by
-- themselves; everything else that would store them is refused. With the bug,
-- temporary identifiers would be stored and become errors later.
--
CREATE FUNCTION method(regclass) RETURNS text LANGUAGE sql AS
	$$ SELECT amname::text FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = $1 $$;

CREATE TABLE plain (a int);
CREATE TABLE base (id int, v enc_int4, n enc_numeric(10, 2), t text);
SELECT method('plain'), method('base');
CREATE TABLE by_like (LIKE base);
CREATE TABLE child () INHERITS (base);
CREATE TYPE row_type AS (a int, v enc_int4);
CREATE TABLE by_type OF row_type;
CREATE TABLE whole (id int, v enc_int4) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF whole FOR VALUES FROM (0) TO (10);
CREATE TEMP TABLE temporary (v enc_text);
CREATE UNLOGGED TABLE unlogged (v enc_text);
CREATE TABLE as_select AS SELECT id, v FROM base;
SELECT id, v INTO selected FROM base;
CREATE MATERIALIZED VIEW view1 AS SELECT v FROM base;
PREPARE q AS SELECT v FROM base;
CREATE TABLE as_execute AS EXECUTE q;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) CREATE TABLE explained AS SELECT v FROM base;
DO $$ BEGIN EXECUTE 'CREATE TABLE in_do (v enc_uuid)'; END $$;
CREATE SCHEMA inner_schema CREATE TABLE in_schema (v enc_bool);
SELECT c, method(c) FROM unnest(ARRAY['by_like', 'child', 'by_type', 'part1', 'temporary', 'unlogged',
	'as_select', 'selected', 'view1', 'as_execute', 'explained', 'in_do',
	'inner_schema.in_schema']::regclass[]) c;

-- refused
CREATE TABLE refused (v enc_int4) USING heap;
CREATE TABLE refused (v enc_int4[]);
CREATE TABLE refused (v base);
CREATE DOMAIN over_protected AS enc_int4;
CREATE TABLE refused (v over_protected[]);
CREATE TABLE refused (v over_protected) USING heap;
CREATE TABLE refused AS SELECT ARRAY[v] AS v FROM base;
CREATE TABLE whole_refused (id int, v enc_int4[]) PARTITION BY RANGE (id);
ALTER TABLE base SET ACCESS METHOD heap;
ALTER TABLE base ADD COLUMN r enc_int4[];
CREATE FOREIGN DATA WRAPPER dummy;
CREATE SERVER nowhere FOREIGN DATA WRAPPER dummy;
CREATE FOREIGN TABLE refused (v enc_int4) SERVER nowhere;
CREATE INDEX ON base ((id::enc_int4));
CREATE STATISTICS refused ON (v + v), id FROM base;

-- allowed
ALTER TABLE plain ADD COLUMN v enc_int4;
SELECT method('plain');
CREATE TABLE of_domain (v over_protected);
SELECT method('of_domain');
DROP TABLE of_domain;
CREATE INDEX ON base (v);
CREATE INDEX ON base (id) WHERE v IS NOT NULL;
CREATE INDEX by_hash ON base USING hash (n);
CREATE STATISTICS allowed ON v, n FROM base;

-- rows without values need no keeper
INSERT INTO base SELECT g, NULL, NULL, repeat('x', 3000) FROM generate_series(1, 100) g;
INSERT INTO whole VALUES (1), (2);
INSERT INTO base (id) VALUES (1) ON CONFLICT DO NOTHING;
UPDATE base SET id = id + 1;
VACUUM FULL base;
CLUSTER base USING base_v_idx;
ANALYZE base;
REINDEX TABLE base;
SELECT count(*), count(v), sum(length(t)) FROM base;
COPY base (id, v) FROM stdin;
7	\N
\.
DELETE FROM base WHERE id = 7;
SELECT count(*) FROM base WHERE v IS NULL;
TRUNCATE base;
SET client_min_messages = error;
ALTER TABLE base DROP COLUMN v CASCADE;
RESET client_min_messages;
INSERT INTO base VALUES (1, NULL, 'x');
SELECT * FROM base;
\d+ base

SET client_min_messages = error;
DROP TABLE base, plain, by_type, whole CASCADE;
DROP TABLE by_like, temporary, unlogged, as_select, selected, as_execute, explained, in_do CASCADE;
DROP SCHEMA inner_schema CASCADE;
DROP DOMAIN over_protected;
DROP TYPE row_type;
DROP SERVER nowhere;
DROP FOREIGN DATA WRAPPER dummy;
DROP FUNCTION method(regclass);
