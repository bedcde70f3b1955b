-- {v} and {n} are parameters: a text and a number.
SELECT id FROM p WHERE name = {v} OR n = {n}
SELECT id FROM p WHERE {v}::text IS NULL OR name = {v} OR n = {n}
SELECT id FROM p WHERE name = ANY (ARRAY[{v}, 'b']) AND n <> ALL (ARRAY[{n}::int8, 1])
SELECT id FROM p WHERE name LIKE '%%' || {v}::text || '%%' OR n BETWEEN {n} AND {n} + 1
SELECT coalesce(name, {v}), n + {n} FROM p WHERE (name, n) <> ({v}, {n})
INSERT INTO p (id, name, n) VALUES (2, {v}, {n}) RETURNING name
INSERT INTO q VALUES (2, 'Ann', {n}) ON CONFLICT (name) DO UPDATE SET name = {v}
UPDATE p SET name = {v}, n = n + {n} WHERE name <> {v}
WITH w AS (SELECT {v}::text AS a, {n}::int8 AS b) SELECT p.id FROM p, w WHERE p.name = w.a OR p.n = w.b
SELECT same({v}), either({v}, 'b'), enc_int8({n}::text)
SELECT id FROM p WHERE note = 'z' AND name = {v} AND n = {n} ORDER BY n - {n} LIMIT 5
CALL add({v}, {n})
INSERT INTO doc VALUES (2, to_json({v}::text), jsonb_build_object('k', {v}::text, 'n', {n}::int8))
UPDATE doc SET b = jsonb_set(b, ARRAY[{v}], to_jsonb({v}::text)) WHERE id = 2
SELECT b ->> {v}::text, j -> {v}::text, b ? {v} FROM doc WHERE b ->> 'a' <> {v}
SELECT count(*) OVER (ORDER BY n RANGE BETWEEN {n} PRECEDING AND {n} + 1 FOLLOWING) FROM p WHERE name <> {v}
SELECT string_to_table(name, {v}), generate_series({n}, n) FROM p
INSERT INTO arr VALUES (2, ARRAY[{v}, NULL], ARRAY[{n}::int8])
UPDATE arr SET a = array_append(a, {v}), m = m || {n}::int8
SELECT id FROM arr WHERE {v} = ANY(a) OR a @> ARRAY[{v}] OR a[1] = {v}
SELECT array_remove(a, {v}), array_position(a, {v}) FROM arr
