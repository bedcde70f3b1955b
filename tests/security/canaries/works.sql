-- %(v)s stands for a text, %(n)s for a number.
SELECT id FROM p WHERE name = '%(v)s'
SELECT id FROM p WHERE name = E'%(v)s' OR name = U&'%(v)s' OR name = N'%(v)s' OR name = $$%(v)s$$
SELECT id FROM p WHERE name = text '%(v)s' OR name = '%(v)s'::varchar OR name = CAST('%(v)s' AS text)
SELECT id FROM p WHERE name = enc_text '%(v)s' OR name = '%(v)s'::enc_text
SELECT enc_text('%(v)s'), pg_catalog.enc_varchar('%(v)s'), enc_int8('%(n)s')
SELECT id FROM p WHERE name IN ('a', '%(v)s') AND n NOT IN (1, %(n)s)
SELECT id FROM p WHERE name = ANY (ARRAY['%(v)s', 'b']) OR n = ANY ('{1,%(n)s}')
SELECT id FROM p WHERE name <> ALL ('{"%(v)s",b}'::text[])
SELECT id FROM p WHERE name BETWEEN '%(v)s' AND 'z' OR n BETWEEN SYMMETRIC %(n)s AND 5
SELECT id FROM p WHERE name LIKE '%%%(v)s%%' OR name ILIKE '%(v)s_' OR name SIMILAR TO '%(v)s|b'
SELECT id FROM p WHERE name ~ '^%(v)s' OR name !~* '%(v)s$' OR starts_with(name, '%(v)s')
SELECT id FROM p WHERE (name, n) = ('%(v)s', %(n)s) OR (n, id) > (%(n)s, 1)
SELECT id FROM p WHERE name IS DISTINCT FROM '%(v)s' AND n IS NOT DISTINCT FROM %(n)s
SELECT id FROM p WHERE n = -%(n)s OR n = %(n)s.0 OR n = +%(n)s OR n > %(n)s - 1
SELECT id FROM p WHERE d < date '2000-01-01' + 7 OR n + 1 = %(n)s
SELECT CASE name WHEN '%(v)s' THEN 1 END, CASE WHEN n = %(n)s THEN name ELSE '%(v)s' END FROM p
SELECT coalesce(name, '%(v)s'), nullif(name, '%(v)s'), greatest(n, %(n)s), least(name, '%(v)s') FROM p
SELECT name || '%(v)s', concat(name, '%(v)s'), concat_ws('%(v)s', name, 'b'), format('%%s %(v)s', name) FROM p
SELECT replace(name, '%(v)s', 'b'), strpos(name, '%(v)s'), position('%(v)s' IN name), lpad(name, 3, '%(v)s') FROM p
SELECT n + %(n)s, n * %(n)s, n %% %(n)s, abs(n - %(n)s), round(n / %(n)s.5, 2) FROM p
SELECT string_agg(name, '%(v)s'), sum(n) FILTER (WHERE name <> '%(v)s') FROM p HAVING max(n) < %(n)s
SELECT lag(name, 1, '%(v)s') OVER (ORDER BY n + %(n)s), rank() OVER (PARTITION BY name = '%(v)s') FROM p
SELECT rank('%(v)s') WITHIN GROUP (ORDER BY name) FROM p
SELECT name || '%(v)s', count(*) FROM p GROUP BY name || '%(v)s' ORDER BY name || '%(v)s'
SELECT id FROM p ORDER BY name = '%(v)s', n - %(n)s
SELECT DISTINCT ON (name = '%(v)s') id FROM p ORDER BY name = '%(v)s', id
SELECT p.id FROM p JOIN (VALUES ('%(v)s', %(n)s)) v(a, b) ON p.name = v.a AND p.n = v.b
SELECT p.id FROM p JOIN q ON p.name = q.name AND q.name <> '%(v)s' LEFT JOIN r ON r.name = '%(v)s'
SELECT id FROM p, LATERAL (SELECT '%(v)s'::text AS x) l WHERE p.name = l.x
WITH w AS (SELECT '%(v)s'::text AS a, %(n)s AS b) SELECT p.id FROM p, w WHERE p.name = w.a OR p.n = w.b
WITH RECURSIVE t(x) AS (SELECT n FROM p UNION ALL SELECT x + %(n)s FROM t WHERE x < 5) SELECT * FROM t
SELECT id FROM p WHERE EXISTS (SELECT FROM q WHERE q.name = '%(v)s') OR name = (SELECT '%(v)s'::text)
SELECT id FROM p WHERE name IN (SELECT name FROM q WHERE n = %(n)s UNION SELECT '%(v)s'::enc_text)
SELECT name FROM p UNION SELECT '%(v)s'::enc_text EXCEPT SELECT name FROM q WHERE name = '%(v)s'
SELECT same('%(v)s'), either('%(v)s'), either(a => '%(v)s'), either(NULL, '%(v)s')
SELECT id FROM p WHERE '%(v)s' = '' OR name = '%(v)s'
SELECT '%(v)s' AS said, id FROM p WHERE name = '%(v)s' -- %(v)s
SELECT id /* %(n)s */ FROM p WHERE name = '%(v)s'
SELECT 'a'; SELECT id FROM p WHERE name = '%(v)s'; SELECT %(n)s = n FROM p
VALUES ('%(v)s'::enc_text, %(n)s::enc_int8)
TABLE p; SELECT id FROM p WHERE n > %(n)s
INSERT INTO p (id, name, n) VALUES (2, '%(v)s', %(n)s)
INSERT INTO p (id, name, n) VALUES (2, '%(v)s', %(n)s), (3, lower('%(v)s'), 4 + %(n)s), (4, DEFAULT, NULL)
INSERT INTO p (id, name) SELECT 2, '%(v)s' RETURNING name, name || '%(v)s'
INSERT INTO p (id, name) SELECT 2, x FROM (SELECT '%(v)s' AS x) t
INSERT INTO q VALUES (2, 'Ann', %(n)s) ON CONFLICT (name) DO UPDATE SET name = '%(v)s' WHERE q.n < %(n)s
WITH w AS (INSERT INTO q VALUES (3, '%(v)s', %(n)s) RETURNING name) UPDATE p SET name = w.name || '%(v)s' FROM w
UPDATE p SET name = '%(v)s', n = n + %(n)s WHERE name <> '%(v)s'
UPDATE p SET (name, n) = ('%(v)s', %(n)s), vc = left('%(v)s', 9)
UPDATE p SET (name, n) = (SELECT '%(v)s', %(n)s)
UPDATE p SET name = q.name FROM q WHERE q.name = p.name OR q.name = '%(v)s' RETURNING '%(v)s' = p.name
DELETE FROM p USING q WHERE q.name = '%(v)s' AND p.n = %(n)s
MERGE INTO q USING p ON q.name = p.name AND p.n <> %(n)s WHEN MATCHED AND q.name <> '%(v)s' THEN UPDATE SET name = '%(v)s' WHEN NOT MATCHED THEN INSERT VALUES (9, '%(v)s', %(n)s)
PREPARE a AS SELECT id FROM p WHERE name = '%(v)s'; EXECUTE a
PREPARE b (text, int8) AS SELECT id FROM p WHERE name = $1 OR n = $2; EXECUTE b ('%(v)s', %(n)s)
PREPARE c (enc_text) AS INSERT INTO q (name) VALUES ($1); EXPLAIN EXECUTE c ('%(v)s')
DECLARE c CURSOR FOR SELECT name || '%(v)s' FROM p WHERE n <> %(n)s; FETCH ALL FROM c; MOVE BACKWARD 1 FROM c
DECLARE c CURSOR WITH HOLD FOR SELECT name FROM p WHERE name <> '%(v)s'
EXPLAIN SELECT id FROM p WHERE name = '%(v)s' AND n < %(n)s
EXPLAIN (ANALYZE, VERBOSE, FORMAT json) SELECT name || '%(v)s' FROM p WHERE n <> %(n)s
CALL add('%(v)s', %(n)s)
CREATE TABLE t AS SELECT id, name || '%(v)s' AS x FROM p WHERE n <> %(n)s
SELECT id, name || '%(v)s' AS x INTO TEMP t FROM p
CREATE TABLE t (a enc_text DEFAULT '%(v)s', b enc_int8 CHECK (b < %(n)s), c enc_text GENERATED ALWAYS AS (a || '%(v)s') STORED); INSERT INTO t (b) VALUES (1)
CREATE TABLE t (LIKE p INCLUDING ALL, x enc_text DEFAULT '%(v)s')
ALTER TABLE p ALTER name SET DEFAULT '%(v)s', ADD CHECK (n <> %(n)s), ADD x enc_text DEFAULT '%(v)s'
ALTER TABLE p ALTER n TYPE enc_numeric USING n + %(n)s
ALTER TABLE p ALTER note TYPE enc_text USING note || '%(v)s'
CREATE INDEX ON p (n) WHERE name <> '%(v)s'
CREATE UNIQUE INDEX ON p ((name || '%(v)s'), (n + %(n)s)); INSERT INTO p (id, name, n) VALUES (7, '%(v)s', %(n)s); SELECT id FROM p WHERE name || '%(v)s' = 'b' ORDER BY name || '%(v)s'
CREATE VIEW v AS SELECT id, name || '%(v)s' AS x FROM p WHERE n <> %(n)s; SELECT * FROM v WHERE x <> '%(v)s'; UPDATE v SET id = 2
CREATE VIEW v AS SELECT id, name FROM p WHERE name <> '%(v)s' WITH CHECK OPTION; INSERT INTO v VALUES (2, 'b')
CREATE MATERIALIZED VIEW v AS SELECT name || '%(v)s' AS x FROM p; REFRESH MATERIALIZED VIEW v
CREATE POLICY o ON p USING (name <> '%(v)s') WITH CHECK (n <> %(n)s)
CREATE RULE o AS ON DELETE TO p DO ALSO INSERT INTO q VALUES (OLD.id, '%(v)s', %(n)s); DELETE FROM p
CREATE TRIGGER o BEFORE UPDATE ON p FOR EACH ROW WHEN (NEW.name = '%(v)s') EXECUTE FUNCTION complain()
CREATE FUNCTION f(a enc_text DEFAULT '%(v)s') RETURNS bool LANGUAGE sql RETURN a = '%(v)s'
CREATE FUNCTION f() RETURNS void LANGUAGE sql BEGIN ATOMIC INSERT INTO q VALUES (4, '%(v)s', %(n)s); END; SELECT f()
DO $$ BEGIN UPDATE p SET name = '%(v)s'; END $$
DO $$ DECLARE v enc_text := '%(v)s'; BEGIN PERFORM v; END $$
DO $$ BEGIN IF EXISTS (SELECT FROM p WHERE n = %(n)s) THEN RAISE NOTICE 'x'; END IF; END $$
CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE p SET n = %(n)s; END $$; SELECT f()
CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM p WHERE name = '%(v)s' $$; SELECT f()
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name := '%(v)s'; RETURN NEW; END $$; CREATE TRIGGER o BEFORE INSERT OR UPDATE ON p FOR EACH ROW EXECUTE FUNCTION f(); UPDATE p SET id = id; INSERT INTO p VALUES (2)
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.n = %(n)s THEN RETURN NULL; END IF; RETURN NEW; END $$; CREATE TRIGGER o BEFORE INSERT OR UPDATE ON p FOR EACH ROW EXECUTE FUNCTION f(); UPDATE p SET id = id; INSERT INTO p VALUES (2)
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN CASE NEW.name WHEN '%(v)s' THEN RETURN NULL; ELSE NEW.n := -%(n)s; END CASE; RETURN NEW; END $$; CREATE TRIGGER o BEFORE INSERT OR UPDATE ON p FOR EACH ROW EXECUTE FUNCTION f(); UPDATE p SET id = id; INSERT INTO p VALUES (2)
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'DECLARE v p.name%%TYPE := ''%(v)s''; BEGIN NEW.name := v; RETURN NEW; END'; CREATE TRIGGER o BEFORE INSERT OR UPDATE ON p FOR EACH ROW EXECUTE FUNCTION f(); UPDATE p SET id = id; INSERT INTO p VALUES (2)
CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE p SET name = name || '%(v)s'; END $$; SELECT f(); SELECT name FROM p
CREATE FUNCTION f() RETURNS p.name%%TYPE LANGUAGE plpgsql AS $$ BEGIN RETURN '%(v)s'; END $$
CREATE FUNCTION f() RETURNS enc_text LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT '%(v)s'); END $$
SAVEPOINT s; INSERT INTO q VALUES (2, '%(v)s', %(n)s); ROLLBACK TO s; LOCK p; SELECT id FROM p WHERE name = '%(v)s' FOR UPDATE
INSERT INTO p (id, name) VALUES (2, '{"b": "%(v)s"}'::json ->> 'b')
INSERT INTO doc VALUES (2, '{"%(v)s": %(n)s}', '["%(v)s"]'), (3, to_json('%(v)s'::text), to_jsonb(%(n)s))
SELECT j -> '%(v)s', b ->> '%(v)s', b #> '{%(v)s,0}', b #>> ARRAY['%(v)s', '1'] FROM doc
SELECT id FROM doc WHERE b @> '{"a": "%(v)s"}' OR b ? '%(v)s' OR b ?| '{%(v)s}' OR b ?& ARRAY['%(v)s', 'b'] OR b = '[%(n)s]'
SELECT jsonb_set(b, '{%(v)s}', '"%(v)s"'), jsonb_insert(b, ARRAY['a', '0'], '{"%(v)s": %(n)s}', true), b #- '{%(v)s,0}' FROM doc
UPDATE doc SET b = jsonb_set(b, '{a,0}', to_jsonb('%(v)s'::text), false) WHERE jsonb_set('{"%(v)s": 1}', '{%(v)s}', b) <> b
SELECT b || '{"%(v)s": %(n)s}', b - '%(v)s', b - ARRAY['%(v)s'], jsonb_extract_path_text(b, '%(v)s') FROM doc
SELECT jsonb_build_object('%(v)s', name, 'n', n + %(n)s), json_build_array(name, '%(v)s', %(n)s), to_jsonb(name || '%(v)s') FROM p
SELECT json_agg(name || '%(v)s' ORDER BY id), jsonb_object_agg('%(v)s', n + %(n)s), json_object_agg(name, '%(v)s') FILTER (WHERE name <> '%(v)s') FROM p
SELECT json_agg(x), jsonb_agg(x.*) FROM (SELECT name, '%(v)s' AS more FROM p) x
SELECT id FROM p WHERE name COLLATE "C" <> '%(v)s' AND name <> '%(v)s' COLLATE "C" ORDER BY name COLLATE "C"
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n + %(n)s), percentile_disc(0.5) WITHIN GROUP (ORDER BY name || '%(v)s') FROM p
SELECT regr_count(n - %(n)s, id) FROM p
SELECT name || '%(v)s', n, sum(n + %(n)s) FROM p GROUP BY GROUPING SETS ((name || '%(v)s', n), (n))
SELECT n, sum(n) FROM p GROUP BY ROLLUP (n) HAVING max(name) <> '%(v)s'
SELECT sum(n) OVER w FROM p WINDOW w AS (PARTITION BY name || '%(v)s' ORDER BY n + %(n)s ROWS 2 PRECEDING)
SELECT id FROM p TABLESAMPLE SYSTEM (100) WHERE name = '%(v)s'
SELECT id FROM p WHERE name = '%(v)s' ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
SELECT id FROM ONLY p WHERE (SELECT name) = '%(v)s'
SELECT id FROM p WHERE name > ALL (VALUES ('%(v)s'), ('b'))
SELECT unnest(ARRAY[name, '%(v)s']) FROM p
SELECT x FROM p, unnest(ARRAY[name, '%(v)s']) AS x
SELECT CAST('%(v)s' AS varchar(5)) = vc, substring(name FROM '%(v)s'), overlay(name PLACING '%(v)s' FROM 1), trim(BOTH '%(v)s' FROM name) FROM p
SELECT translate(name, 'a', '%(v)s'), split_part(name, '%(v)s', 1), regexp_replace(name, '%(v)s', 'b', 'g'), repeat('%(v)s', 2) = name FROM p
SELECT md5('%(v)s') = name, encode('%(v)s'::bytea, 'hex') = name, decode('%(v)s', 'escape')::enc_bytea IS NULL FROM p
SELECT num_nulls(name, '%(v)s'), name IS NULL OR '%(v)s' IS NULL FROM p
SELECT EXISTS (SELECT name INTERSECT SELECT '%(v)s'::enc_text) FROM p
SELECT NOT (name = '%(v)s') IS TRUE, (name = '%(v)s' OR n = %(n)s) IS UNKNOWN FROM p
SELECT id FROM p WHERE (name, n) IN (('%(v)s', %(n)s), ('b', 2)) OR ROW(name, n) IS DISTINCT FROM ROW('%(v)s', %(n)s)
SELECT p.id FROM p NATURAL JOIN q WHERE q.name || '%(v)s' <> p.name
SELECT id FROM p WHERE n::text = '%(n)s' OR n::enc_numeric(20, 2) = %(n)s.25 OR %(n)s::bigint = n OR n = '%(n)s'
SELECT id FROM p WHERE n = 0%(n)s OR n = %(n)se0 OR n = bigint '%(n)s'
CREATE UNIQUE INDEX ON p (id) INCLUDE (note) WHERE n <> %(n)s
ALTER TABLE q ADD EXCLUDE USING btree (name WITH =) WHERE (name <> '%(v)s')
ALTER TABLE p ADD COLUMN g enc_text GENERATED ALWAYS AS (name || '%(v)s') STORED
ALTER TABLE p ADD CONSTRAINT c CHECK (name <> '%(v)s') NOT VALID; ALTER TABLE p VALIDATE CONSTRAINT c
CREATE POLICY o ON p; ALTER POLICY o ON p USING (name <> '%(v)s')
CREATE VIEW v AS SELECT id, name FROM p; ALTER VIEW v ALTER name SET DEFAULT '%(v)s'; INSERT INTO v (id) VALUES (5)
CREATE RECURSIVE VIEW v (x) AS SELECT name FROM p UNION SELECT x || '%(v)s' FROM v WHERE x = '%(v)s'
CREATE TABLE t (k int, a enc_text DEFAULT '%(v)s') PARTITION BY LIST (k); CREATE TABLE t1 PARTITION OF t (a DEFAULT '%(v)sb') FOR VALUES IN (1)
CREATE TABLE t (a enc_text DEFAULT '%(v)s') INHERITS (p)
CREATE PROCEDURE f(a enc_text DEFAULT '%(v)s') LANGUAGE sql BEGIN ATOMIC UPDATE p SET name = a || '%(v)s'; END; CALL f()
DO $$ DECLARE r record; BEGIN FOR r IN SELECT id FROM p WHERE name = '%(v)s' LOOP NULL; END LOOP; END $$
DO $$ DECLARE c CURSOR FOR SELECT id FROM p WHERE name = '%(v)s'; BEGIN OPEN c; CLOSE c; END $$
DO $$ BEGIN WHILE (SELECT count(*) FROM p WHERE name = '%(v)s') > 0 LOOP EXIT; END LOOP; PERFORM id FROM p WHERE n = %(n)s; END $$
DO $$ BEGIN RAISE NOTICE 'about %%', (SELECT name FROM p WHERE name = '%(v)s'); END $$
DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM p WHERE name = '%(v)s'), 'no'; END $$
DO $$ DECLARE v enc_text; BEGIN SELECT name || '%(v)s' INTO v FROM p; END $$
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN CASE WHEN NEW.name = '%(v)s' THEN RETURN NULL; ELSE RETURN NEW; END CASE; END $$
CREATE OR REPLACE FUNCTION same(a enc_text) RETURNS enc_text LANGUAGE sql RETURN a || '%(v)s'
SET LOCAL search_path = canaries; SELECT id FROM p WHERE name = '%(v)s'
MERGE INTO p USING (SELECT '%(v)s' AS a) s ON p.name = s.a WHEN NOT MATCHED THEN INSERT (id, name) VALUES (9, s.a || '%(v)s')
INSERT INTO p (id, name, n) OVERRIDING SYSTEM VALUE VALUES (5, '%(v)s', %(n)s)
SELECT GROUPING(name), count(*) FROM p GROUP BY CUBE (name) ORDER BY name = '%(v)s'
SELECT name SIMILAR TO '%(v)s' ESCAPE '#', name NOT LIKE '%(v)s' ESCAPE '!' FROM p
SELECT d BETWEEN '2000-01-01' AND now(), d + interval '%(n)s microseconds' FROM p
SELECT to_char(n, '%(v)s'), to_char(d, '%(v)s'), to_number('%(n)s', '999999999999') = n FROM p
SELECT b -> 'a' -> '%(v)s', b #>> '{a,%(v)s}', (b ->> '%(v)s')::int FROM doc
UPDATE doc SET b = b || jsonb_build_object('k', '%(v)s', 'n', %(n)s), j = '{"a": "%(v)s"}'
SELECT id FROM doc WHERE b = '{"a": "%(v)s"}'::jsonb OR b <@ '{"a": "%(v)s"}' OR b || '{}' = '{"%(v)s": 1}'
PREPARE d (text, int8) AS INSERT INTO q VALUES (9, $1, $2) ON CONFLICT DO NOTHING; EXECUTE d ('%(v)s' || 'x', %(n)s + 1)
PREPARE e (text) AS SELECT name FROM p WHERE name <> $1; CREATE TABLE t AS EXECUTE e ('%(v)s')
SELECT (ARRAY[name, '%(v)s'])[2], array_to_string(ARRAY[name, 'b'], '%(v)s') FROM p
SELECT count(*) OVER (ORDER BY n RANGE BETWEEN %(n)s PRECEDING AND %(n)s + 1 FOLLOWING) FROM p
SELECT sum(n) OVER w FROM p WINDOW w AS (PARTITION BY name = '%(v)s' ORDER BY n RANGE %(n)s PRECEDING EXCLUDE TIES)
SELECT string_to_table(name, '%(v)s'), string_to_table('%(v)s ' || name, ' ', '%(v)s') FROM p
SELECT generate_series(n, n + %(n)s, %(n)s) FROM p
SELECT x, y FROM p, generate_series(%(n)s, n) x, string_to_table(name, '%(v)s') AS y
SELECT jsonb_array_elements(b -> '%(v)s'), json_array_elements_text(j -> 'a') || '%(v)s' FROM doc
SELECT regexp_split_to_table('%(v)s ' || name, '%(v)s', 'i') FROM p
SELECT key FROM doc, jsonb_each_text(b || '{"%(v)s": 1}') WHERE value = '%(v)s'
SELECT generate_series(%(n)s.5, n::enc_numeric) FROM p
INSERT INTO p (id, name) VALUES (98, '%(v)s'), (99, '%(v)sx') ORDER BY 2 LIMIT 1
INSERT INTO p (id, name) SELECT DISTINCT 98, '%(v)s' FROM q
CREATE DOMAIN canary_d AS enc_text DEFAULT '%(v)s' CHECK (VALUE <> '%(v)s'); CREATE TABLE w (a canary_d); INSERT INTO w VALUES ('%(v)sx'); SELECT '%(v)sy'::canary_d FROM w WHERE a > '%(v)s'; ALTER DOMAIN canary_d SET DEFAULT '%(v)sz'
INSERT INTO arr VALUES (2, '{%(v)s,b}', '{%(n)s}')
INSERT INTO arr VALUES (2, ARRAY['%(v)s', NULL], ARRAY[%(n)s::int8])
INSERT INTO arr (a) VALUES ('{{"%(v)s",a},{b,c}}')
INSERT INTO arr (a, m) SELECT a || ARRAY['%(v)s'], m || %(n)s::int8 FROM arr
UPDATE arr SET a = '{%(v)s}', m = ARRAY[1, %(n)s]
UPDATE arr SET a = array_append(a, '%(v)s'), m = array_prepend(%(n)s::int8, m)
UPDATE arr SET a[1] = '%(v)s', m[2] = %(n)s
SELECT id FROM arr WHERE '%(v)s' = ANY(a) OR %(n)s = ANY(m)
SELECT id FROM arr WHERE a @> ARRAY['%(v)s'] OR m && '{%(n)s}' OR a <@ '{%(v)s}'
SELECT id FROM arr WHERE a = '{%(v)s}' OR a[1] = '%(v)s' OR m > ARRAY[%(n)s::int8]
SELECT array_position(a, '%(v)s'), array_remove(a, '%(v)s'), array_replace(a, 'x', '%(v)s'), array_cat(a, '{%(v)s}') FROM arr
SELECT array_position(a, '%(v)s', 1), array_positions(a, '%(v)s'), ARRAY['%(v)s'] || a, trim_array(a || '{%(v)s}', 1) FROM arr
SELECT coalesce(a, '{%(v)s}'), CASE WHEN id = 1 THEN a ELSE '{%(v)s}' END FROM arr
SELECT a FROM arr UNION ALL SELECT ARRAY['%(v)s'] FROM arr
SELECT x || '%(v)s' FROM arr, unnest(a) x WHERE x <> '%(v)s'
SELECT array_to_string(a, '%(v)s', 'none %(v)s') FROM arr
ALTER TABLE arr ADD CHECK ('%(v)s' <> ALL (a))
ALTER TABLE arr ALTER a SET DEFAULT ARRAY['%(v)s'], ALTER m SET DEFAULT '{%(n)s}'
ALTER TABLE arr ADD COLUMN more enc_text[] DEFAULT '{%(v)s,NULL}'
SELECT array_position(ARRAY[name], '%(v)s') FROM p
