--
-- Without a keeper.
-- Mechanism: the channel is opened at its first use. Right answer: the error
-- 08001 with a hint for what needs values, and everything else works; the
-- connection stays usable. With the bug, statements hang or sessions die.
--
\set VERBOSITY sqlstate
\set SHOW_CONTEXT never
\t on
SELECT confide.extension_version() ~ '^confide [0-9.]+ \(contract [0-9]+\)$';
SELECT 'cfd1.zwIHAAAAAAAYAAAAAAAAANrPLxNmlh8ZNIwQNqOTkVkK8ZiAIUOuFhS5'::enc_int4;
\set VERBOSITY default
SELECT confide.handshake(1, '\x00');
SELECT confide.handshake(2, '\x00');
SELECT * FROM confide.confide_stat_keeper;
CREATE TABLE t (v enc_int4);
INSERT INTO t SELECT g FROM generate_series(1, 3) g;
INSERT INTO t VALUES (NULL);
SELECT v + v, v < v, sum(v) OVER () FROM t;
BEGIN;
SAVEPOINT s;
SELECT now()::enc_timestamptz;
ROLLBACK TO s;
SELECT count(*) FROM t;
COMMIT;
-- a drop does not depend on the keeper
DROP TABLE t;

-- who may do what
CREATE ROLE confide_somebody;
SET ROLE confide_somebody;
SELECT confide.bench_answered(1);
SELECT * FROM confide.stat_keeper();
SET confide.keeper_socket = '/tmp/mine';
SHOW confide.keeper_socket;
SET confide.unknown = 1;
RESET ROLE;
DROP ROLE confide_somebody;
