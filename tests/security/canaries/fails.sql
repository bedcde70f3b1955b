-- These fail, on the server or before; what they say must not be logged.
INSERT INTO p (id, name) VALUES (1, '%(v)s')
INSERT INTO p (id, n) VALUES (2, '%(v)s')
INSERT INTO p (id, n) VALUES (2, %(n)s00000000000)
INSERT INTO p (id, d) VALUES (2, '%(v)s')
INSERT INTO p (id, vc) VALUES (2, '%(v)s%(v)s%(v)s%(v)s%(v)s')
INSERT INTO q VALUES (2, '%(v)s', %(n)s), (3, '%(v)s', %(n)s)
INSERT INTO q VALUES (2, '%(v)s', -%(n)s)
INSERT INTO r VALUES ('%(v)s')
INSERT INTO r SELECT NULL FROM p WHERE name <> '%(v)s'
INSERT INTO bad VALUES (1, '%(v)s')
SELECT name + %(n)s FROM p
SELECT nosuch('%(v)s', name) FROM p
SELECT nothing FROM p WHERE name = '%(v)s'
SELECT name FROM nothing WHERE name = '%(v)s' AND 'a'::enc_text = 'b'
SELECT n / (n - n) FROM p WHERE n <> %(n)s
SELECT '%(v)s'::enc_int8, '%(v)s'::enc_date
SELECT id FROM p WHERE name = '%(v)s' AND
SELECT id FROM p WHERE name ~ '%(v)s('
SELECT to_date(name || '%(v)s', 'YYYY') FROM p
PREPARE d (enc_int8) AS SELECT $1; EXECUTE d ('%(v)s')
UPDATE p SET note = '%(v)s' || name
SELECT (name || '%(v)s')::text::int FROM p
ALTER TABLE q ADD CHECK (name = '%(v)s' OR n = %(n)s)
SELECT count(*) OVER (ORDER BY d RANGE '%(v)s' PRECEDING) FROM p
SELECT count(*) OVER (ORDER BY n RANGE -%(n)s PRECEDING) FROM p
INSERT INTO arr (m) VALUES ('{%(v)s}')
INSERT INTO arr (m) VALUES (ARRAY['%(v)s'])
INSERT INTO arr (a) VALUES ('{%(v)s')
INSERT INTO arr (a) VALUES ('%(v)s')
INSERT INTO arr (a) VALUES ('[2:3]={%(v)s,b}')
INSERT INTO arr (a, a) VALUES ('{%(v)s}', NULL)
SELECT id FROM arr WHERE a @> '%(v)s'
SELECT id FROM arr WHERE a || '%(v)s' = a
SELECT id FROM arr WHERE plain_function(a, '%(v)s')
