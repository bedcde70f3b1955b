-- Nobody can seal these: they are refused before they are sent.
DO $$ BEGIN UPDATE p SET name = '%(v)s'; END $$
DO $$ DECLARE v enc_text := '%(v)s'; BEGIN PERFORM v; END $$
DO $$ BEGIN IF EXISTS (SELECT FROM p WHERE n = %(n)s) THEN RAISE NOTICE 'x'; END IF; END $$
DO $$ BEGIN EXECUTE 'UPDATE p SET name = ''%(v)s'''; END $$
DO $$ BEGIN EXECUTE 'UPDATE p SET name = $1' USING '%(v)s'; END $$
CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE p SET n = %(n)s; END $$
CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM p WHERE name = '%(v)s' $$
CREATE FUNCTION f(a text) RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM p WHERE name = a $$; SELECT f('%(v)s')
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name := '%(v)s'; RETURN NEW; END $$
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.n = %(n)s THEN RETURN NULL; END IF; RETURN NEW; END $$
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN CASE NEW.name WHEN '%(v)s' THEN RETURN NULL; ELSE RETURN NEW; END CASE; END $$
CREATE FUNCTION f() RETURNS p.name%%TYPE LANGUAGE plpgsql AS $$ BEGIN RETURN '%(v)s'; END $$
CREATE FUNCTION f() RETURNS enc_text LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT '%(v)s'); END $$
SELECT query_to_xml('SELECT id FROM p WHERE name = ''%(v)s''', true, false, '')
SELECT query_to_xml(format('SELECT id FROM p WHERE name = %%L', '%(v)s'), true, false, '')
INSERT INTO p (id, name) SELECT * FROM json_to_recordset('[{"a": 1, "b": "%(v)s"}]') AS x(a int, b text)
INSERT INTO p SELECT * FROM json_populate_record(NULL::p, '{"id": 2, "name": "%(v)s", "n": %(n)s}')
SELECT id FROM doc WHERE b @? '$.%(v)s' OR jsonb_path_exists(b, '$.%(v)s') OR b #- '{%(v)s}' = b
SELECT j ->> 'a' FROM doc WHERE jsonb_set(b, '{a}', '"%(v)s"') = b
CREATE TABLE t (name enc_text) PARTITION BY LIST (name); CREATE TABLE u PARTITION OF t FOR VALUES IN ('%(v)s')
