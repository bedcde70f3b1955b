--
-- What the database refuses before a keeper is asked.
-- Mechanism: input functions, hooks on parse analysis and on catalogs. Right
-- answer: an error that does not repeat the value. With the bug, plaintext
-- would be stored, or a protected value would get lost in text.
--
CREATE TABLE secrets (id int, pay enc_int4, who enc_text, at enc_timestamptz);

-- plaintext
INSERT INTO secrets (pay) VALUES ('4711');
INSERT INTO secrets (who) VALUES ('Jane Doe');
INSERT INTO secrets (pay) VALUES (4711);
INSERT INTO secrets (pay) VALUES (4700 + 11);
SELECT id FROM secrets WHERE pay = 4711;
SELECT id FROM secrets WHERE who = 'Jane Doe'::text;
SELECT id FROM secrets WHERE pay = NULL::int4;
COPY secrets (pay) FROM stdin;
4711
\.
-- broken envelopes
SELECT 'cfd1.'::enc_int4;
SELECT 'cfd1.zw'::enc_int4;
SELECT 'cfd1.!!!!'::enc_int4;
SELECT 'cfd2.zwIHAAAAAAAYAAAAAAAAANrPLxNmlh8ZNIwQNqOTkVkK8ZiAIUOuFhS5'::enc_int4;

-- constants in catalogs
CREATE TABLE refused (pay enc_int4 DEFAULT 5);
CREATE TABLE refused (pay enc_int4 CHECK (pay > 5));
ALTER TABLE secrets ALTER pay SET DEFAULT 5;
ALTER TABLE secrets ADD CHECK (pay > 5);
CREATE VIEW refused AS SELECT id FROM secrets WHERE pay > 5;

-- casts by way of text
SELECT pay::text FROM secrets;
SELECT id::text::enc_int4 FROM secrets;
SELECT who || 'x'::text FROM secrets;
SELECT 'x'::text || who FROM secrets;
SELECT concat(who, 'x'), format('%s', who) FROM secrets;
SELECT pay::int4 FROM secrets;

-- names of fields
SELECT extract(epoch FROM at), date_part('yrs', at), date_trunc('MONTH', at) FROM secrets;
SELECT extract(fortnight FROM '2020-01-01'::timestamptz);
INSERT INTO secrets (id) VALUES (1);
SELECT extract(fortnight FROM at) FROM secrets WHERE at IS NOT NULL;

-- aggregate states
SELECT 'x'::enc_aggstate;
SELECT enc_int8_final(NULL);
SELECT enc_aggregate_combine(NULL, NULL);
SELECT sum(pay), avg(pay), min(who), count(pay), count(*) FROM secrets;
SET client_min_messages = error;
DROP TABLE secrets;
