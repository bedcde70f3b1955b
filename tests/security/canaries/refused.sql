-- Nobody can seal these: they are refused before they are sent.
DO $$ BEGIN EXECUTE 'UPDATE p SET name = ''%(v)s'''; END $$
DO $$ BEGIN EXECUTE 'UPDATE p SET name = $1' USING '%(v)s'; END $$
CREATE FUNCTION f(a text) RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM p WHERE name = a $$; SELECT f('%(v)s')
SELECT query_to_xml('SELECT id FROM p WHERE name = ' || quote_literal('%(v)s'), true, false, '')
SELECT query_to_xml(format('SELECT id FROM p WHERE name = %%s', quote_literal('%(v)s')), true, false, '')
SELECT query_to_xml(overlay('SELECT id FROM p WHERE name = ?' placing '''%(v)s''' from 32), true, false, '')
SELECT query_to_xml(string_agg(x, ''), true, false, '') FROM (VALUES ('SELECT id FROM p WHERE name = '), ('''%(v)s''')) v (x)
SELECT query_to_xml(translate('SELECT id FROM p WHERE name = #%(v)s#', '#', ''''), true, false, '')
SELECT query_to_xml(lpad('''%(v)s''', 60, 'SELECT id FROM p WHERE name = '), true, false, '')
SELECT query_to_xml('SELECT id FROM p WHERE name = ''%(v)s''', true, false, '')
SELECT query_to_xml(format('SELECT id FROM p WHERE name = %%L', '%(v)s'), true, false, '')
INSERT INTO p (id, name) SELECT * FROM json_to_recordset('[{"a": 1, "b": "%(v)s"}]') AS x(a int, b text)
INSERT INTO p SELECT * FROM json_populate_record(NULL::p, '{"id": 2, "name": "%(v)s", "n": %(n)s}')
SELECT id FROM doc WHERE b @? '$.%(v)s' OR jsonb_path_exists(b, '$.%(v)s')
SELECT jsonb_set_lax(b, '{a}', '"%(v)s"') FROM doc
SELECT jsonb_set(jsonb_in => b, path => '{%(v)s}', replacement => '"%(v)s"') FROM doc
CREATE TABLE t (name enc_text) PARTITION BY LIST (name); CREATE TABLE u PARTITION OF t FOR VALUES IN ('%(v)s')
CREATE TABLE t (name enc_text) PARTITION BY RANGE (lower(name)); CREATE TABLE u PARTITION OF t FOR VALUES FROM ('%(v)s') TO (MAXVALUE)
SELECT b['%(v)s'], (b -> 'a')['%(v)s'] FROM doc
UPDATE doc SET b['%(v)s'] = '1'
UPDATE p SET vc[1] = '%(v)s'
SELECT xmlelement(name a, name, '%(v)s') FROM p
CREATE STATISTICS s ON id, (name || '%(v)s') FROM p
CREATE FUNCTION f() RETURNS SETOF p LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT * FROM p WHERE name <> '%(v)s'; END $$
