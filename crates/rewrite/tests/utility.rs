//! Statements other than queries and DML: definitions, COPY, PREPARE, routines.

mod common;
use common::{check, one, refused, relation, schema, show, unchanged};
use rewrite::{
    Direction, Endpoint, Fit, Format, Header, ParamUse, Prepared, Source, StatementKind,
    Transaction, analyze, analyze_with,
};

#[test]
fn definitions() {
    check(
        &schema(),
        &[
            (
                "CREATE TABLE t (id int DEFAULT 1, a pg_catalog.enc_int4 DEFAULT 5 CHECK (a > 3), b enc_varchar(10) DEFAULT 'x', CHECK (a < 9 AND id < 8)) WITH (fillfactor = 70)",
                "CREATE TABLE t (id int DEFAULT 1, a enc_int4 DEFAULT '<<int4:5>>'::enc_int4 CHECK (a > '<<int4:3>>'::enc_int4), b enc_varchar(10) DEFAULT '<<x>>', CHECK (a < '<<int4:9>>'::enc_int4 AND id < 8)) WITH (fillfactor = 70)",
            ),
            (
                "CREATE TABLE t (a enc_int4, g enc_int4 GENERATED ALWAYS AS (a * 2) STORED)",
                "CREATE TABLE t (a enc_int4, g enc_int4 GENERATED ALWAYS AS (a * '<<int4:2>>'::enc_int4) STORED)",
            ),
            (
                "CREATE TABLE t (LIKE emp INCLUDING ALL, CHECK (salary > 0))",
                "CREATE TABLE t (LIKE emp INCLUDING ALL, CHECK (salary > '<<int4:0>>'::enc_int4))",
            ),
            (
                "CREATE TABLE t (x int) INHERITS (emp)",
                "CREATE TABLE t (x int) INHERITS (emp)",
            ),
            (
                "CREATE TABLE t (id int, a enc_numeric(10,2), z numeric(5,2)) PARTITION BY RANGE (id)",
                "CREATE TABLE t (id int, a enc_numeric(10,2), z numeric(5,2)) PARTITION BY RANGE (id)",
            ),
            (
                "CREATE TABLE t PARTITION OF emp FOR VALUES FROM (1) TO (10)",
                "CREATE TABLE t PARTITION OF emp FOR VALUES FROM (1) TO (10)",
            ),
            (
                "CREATE TABLE t PARTITION OF emp FOR VALUES WITH (MODULUS 4, REMAINDER 1)",
                "CREATE TABLE t PARTITION OF emp FOR VALUES WITH (MODULUS 4, REMAINDER 1)",
            ),
            (
                "CREATE TABLE t AS SELECT salary + 1 AS s FROM emp",
                "CREATE TABLE t AS SELECT salary + '<<int4:1>>'::enc_int4 AS s FROM emp",
            ),
            (
                "SELECT salary + 1 AS s INTO t FROM emp",
                "SELECT salary + '<<int4:1>>'::enc_int4 AS s INTO t FROM emp",
            ),
            (
                "CREATE VIEW v AS SELECT * FROM emp WHERE salary > 5",
                "CREATE VIEW v AS SELECT * FROM emp WHERE salary > '<<int4:5>>'::enc_int4",
            ),
            (
                "CREATE MATERIALIZED VIEW v AS SELECT * FROM emp WHERE name = 'a'",
                "CREATE MATERIALIZED VIEW v AS SELECT * FROM emp WHERE name = '<<a>>'",
            ),
            (
                "ALTER TABLE emp ADD COLUMN x enc_int4 DEFAULT 5",
                "ALTER TABLE emp ADD COLUMN x enc_int4 DEFAULT '<<int4:5>>'::enc_int4",
            ),
            (
                "ALTER TABLE emp ALTER salary SET DEFAULT 5, ALTER dept SET DEFAULT 5",
                "ALTER TABLE emp ALTER salary SET DEFAULT '<<int4:5>>'::enc_int4, ALTER dept SET DEFAULT 5",
            ),
            (
                "ALTER TABLE emp ADD CONSTRAINT c CHECK (salary > 5)",
                "ALTER TABLE emp ADD CONSTRAINT c CHECK (salary > '<<int4:5>>'::enc_int4)",
            ),
            (
                "ALTER TABLE plain ALTER salary TYPE enc_int4 USING salary + 5",
                "ALTER TABLE plain ALTER salary TYPE enc_int4 USING salary + '<<int4:5>>'::enc_int4",
            ),
            (
                "CREATE INDEX ON emp ((salary + 1)) WHERE name = 'a'",
                "CREATE INDEX ON emp ((salary + '<<int4:1>>'::enc_int4)) WHERE name = '<<a>>'",
            ),
            (
                "CREATE POLICY p ON emp USING (salary < 5) WITH CHECK (name = 'a')",
                "CREATE POLICY p ON emp USING (salary < '<<int4:5>>'::enc_int4) WITH CHECK (name = '<<a>>')",
            ),
            (
                "CREATE RULE r AS ON INSERT TO plain WHERE new.salary = 5 DO ALSO INSERT INTO upd (a) VALUES (7)",
                "CREATE RULE r AS ON INSERT TO plain WHERE new.salary = 5 DO ALSO INSERT INTO upd (a) VALUES ('<<int4:7>>'::enc_int4)",
            ),
            (
                "CREATE TRIGGER t AFTER UPDATE ON emp FOR EACH ROW WHEN (new.salary > 5 AND old.id = 3) EXECUTE FUNCTION f('x', 1)",
                "CREATE TRIGGER t AFTER UPDATE ON emp FOR EACH ROW WHEN (new.salary > '<<int4:5>>'::enc_int4 AND old.id = 3) EXECUTE FUNCTION f('x', 1)",
            ),
            (
                "EXPLAIN (ANALYZE, COSTS false, FORMAT 'json') SELECT * FROM emp WHERE salary = 5",
                "EXPLAIN (ANALYZE, COSTS false, FORMAT 'json') SELECT * FROM emp WHERE salary = '<<int4:5>>'::enc_int4",
            ),
            (
                "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM emp WHERE salary = 5",
                "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM emp WHERE salary = '<<int4:5>>'::enc_int4",
            ),
            (
                "CREATE FUNCTION f(a enc_int4 DEFAULT 5) RETURNS enc_int4 LANGUAGE sql AS 'SELECT a'",
                "CREATE FUNCTION f(a enc_int4 DEFAULT '<<int4:5>>'::enc_int4) RETURNS enc_int4 LANGUAGE sql AS 'SELECT a'",
            ),
            (
                "CREATE DOMAIN d AS enc_text DEFAULT 'a' NOT NULL CHECK (VALUE <> 'x' AND length(VALUE) < 9)",
                "CREATE DOMAIN d AS enc_text DEFAULT '<<a>>' NOT NULL CHECK (VALUE <> '<<x>>' AND length(VALUE) < '<<int4:9>>'::enc_int4)",
            ),
        ],
    );
    unchanged(
        &schema(),
        &[
            "BEGIN ISOLATION LEVEL SERIALIZABLE",
            "SET application_name = 'x'",
            "SET standard_conforming_strings = on",
            "COMMENT ON TABLE emp IS 'five'",
            "VACUUM (FREEZE, PARALLEL 2) emp",
            "TRUNCATE emp",
            "CREATE ROLE r PASSWORD 'x' CONNECTION LIMIT 5",
            "ALTER TABLE emp SET (fillfactor = 70)",
            "ALTER TABLE emp ALTER salary SET STATISTICS 5",
            "CREATE EXTENSION confide",
            "NOTIFY c, 'payload'",
            "FETCH 5 FROM c",
            "DO $$ BEGIN PERFORM 1; RAISE NOTICE 'x'; END $$",
            "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT 5 FROM plain WHERE salary = 3); END $$",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT count(*)::int FROM emp $$",
            "CREATE FUNCTION f(int) RETURNS int LANGUAGE sql RETURN $1 + 5",
            "CREATE DOMAIN d AS text CHECK (VALUE <> 'x')",
            "ALTER DOMAIN d ADD CHECK (VALUE <> 'x')",
            "CREATE SEQUENCE s START 5 INCREMENT 2",
            "ALTER TABLE emp ATTACH PARTITION plain FOR VALUES IN (1, 2)",
            "GRANT SELECT ON emp TO r",
            "CREATE AGGREGATE a (int) (sfunc = int4pl, stype = int, initcond = '5')",
            "CALL p(5, 'x')",
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := 5; RETURN NEW; END $$",
            "CREATE AGGREGATE a (enc_int4) (sfunc = f, stype = enc_int4)",
            "CREATE FUNCTION f() RETURNS int LANGUAGE plpython3u AS $$ return 'it''s \"' $$",
        ],
    );
    refused(
        &schema(),
        &[
            "CREATE AGGREGATE a (enc_int4) (sfunc = f, stype = enc_int4, initcond = 's3cret')",
            "CREATE FUNCTION f() RETURNS int LANGUAGE plpython3u AS $$ plpy.execute(\"insert into EMP values('s3cret\") $$",
            "DO $$ BEGIN EXECUTE 'INSERT INTO \"Odd Name\" VALUES (5200)'; END $$",
            "CREATE TABLE t (a enc_int4) PARTITION BY RANGE (a)",
            "CREATE DOMAIN d AS enc_text[] CHECK (VALUE <> '{s3cret}')",
            "CREATE DOMAIN d AS enc_text; CREATE FUNCTION f(d[]) RETURNS int LANGUAGE sql AS 'SELECT 1'; SELECT '{s3cret}'::d[]",
            "DO $$ BEGIN EXECUTE 'INSERT INTO emp(name) VALUES (''s3cret'')'; END $$",
        ],
    );
}

/// A domain over a protected type, for what follows in the same text. Bug: a literal for a column of its type goes
/// out in the clear, or is fitted to the column without the domain's modifier.
#[test]
fn domains() {
    let schema = schema();
    let sql = "CREATE DOMAIN d AS enc_numeric(4, 1) CHECK (VALUE > 0); CREATE DOMAIN e AS d; ALTER DOMAIN e ADD CHECK (VALUE < 9); ALTER DOMAIN e SET DEFAULT 3; CREATE TABLE fresh (a e, b d); INSERT INTO fresh VALUES (5, $1); SELECT 5::e, CAST($1 AS d), d '7'";
    let list = analyze(sql, &schema).expect("seven");
    assert_eq!(
        list.iter().map(|s| s.edits.len()).collect::<Vec<_>>(),
        [1, 0, 1, 1, 0, 1, 2]
    );
    let protected = |used: &ParamUse| matches!(used, ParamUse::Protected { fits: None, .. });
    assert!(list[5].params.values().all(protected));
    assert!(list[6].params.values().all(protected));
}

#[test]
fn kinds() {
    let schema = schema();
    let kind = |sql: &str| one(sql, &schema).expect(sql).kind;
    assert_eq!(kind("SELECT 1"), StatementKind::Select);
    assert_eq!(
        kind("COMMIT"),
        StatementKind::TransactionControl(Transaction::Commit)
    );
    assert_eq!(
        kind("PREPARE p AS SELECT 1"),
        StatementKind::Prepare { name: "p".into() }
    );
    assert_eq!(
        kind("DEALLOCATE ALL"),
        StatementKind::Deallocate { name: None }
    );
    assert_eq!(kind("DISCARD ALL"), StatementKind::Discard { all: true });
    assert!(
        one("SET search_path = other", &schema)
            .expect("set")
            .changes_search_path
    );
    assert!(
        one("SELECT set_config('search_path', '', false)", &schema)
            .expect("set")
            .changes_search_path
    );
    assert!(
        one("CREATE TABLE t (a int)", &schema)
            .expect("create")
            .changes_schema
    );
    for (sql, changes) in [
        ("GRANT USAGE ON SCHEMA other TO someone", true),
        ("GRANT someone TO another", true),
        ("GRANT SELECT ON emp TO someone", false),
    ] {
        assert_eq!(one(sql, &schema).expect("grant").changes_schema, changes);
    }
    let statement = one("SELECT * FROM emp", &schema).expect("select");
    assert!(
        statement.depends_on_search_path
            && statement.touches_protected
            && !statement.changes_schema
    );
    let statement = one("SELECT * FROM public.dept", &schema).expect("select");
    assert!(!statement.depends_on_search_path && statement.touches_protected);
    assert!(
        !one("SELECT * FROM plain", &schema)
            .expect("select")
            .touches_protected
    );
    assert!(analyze("", &schema).expect("empty").is_empty());
    assert!(
        analyze(" ; -- nothing\n", &schema)
            .expect("empty")
            .is_empty()
    );
}

#[test]
fn several_statements() {
    let schema = schema();
    let sql = "BEGIN; SELECT * FROM emp WHERE salary = 5 ; INSERT INTO plain VALUES (1, 'x');\n";
    let list = analyze(sql, &schema).expect("three");
    assert_eq!(list.len(), 3);
    assert_eq!(
        &sql[list[1].range.clone()],
        "SELECT * FROM emp WHERE salary = 5"
    );
    let sql = "CREATE TEMP TABLE emp (salary int4); INSERT INTO emp VALUES (5); DROP TABLE emp; INSERT INTO emp (salary) VALUES (6)";
    let list = analyze(sql, &schema).expect("four");
    assert_eq!(
        list.iter().map(|s| s.edits.len()).collect::<Vec<_>>(),
        [0, 0, 0, 1]
    );
    let sql = "CREATE TABLE fresh (a enc_int4, b int); INSERT INTO fresh VALUES (5, 6); CREATE VIEW w AS SELECT a AS q FROM fresh; SELECT * FROM w WHERE q = 7; ALTER TABLE fresh ADD c enc_text; UPDATE fresh SET c = 'x'";
    let list = analyze(sql, &schema).expect("six");
    assert_eq!(
        list.iter().map(|s| s.edits.len()).collect::<Vec<_>>(),
        [0, 1, 0, 1, 0, 1]
    );
}

/// Which column a parameter is only assigned to, as it is. Bug: a value is rounded for a column that is also compared
/// or computed with.
#[test]
fn fits() {
    let schema = schema();
    let fits = |sql: &str| -> Vec<Option<Fit>> {
        let statement = one(sql, &schema).unwrap_or_else(|r| panic!("{sql}: {r:?}"));
        let fit = |used: &ParamUse| match used {
            ParamUse::Protected { fits, .. } => *fits,
            _ => None,
        };
        statement.params.values().map(fit).collect()
    };
    let column = |table: &str, name: &str, code| {
        Some(Fit {
            column: grant::Column::new("public", table, name).id(),
            code,
            typmod: -1,
        })
    };
    let a = column("upd", "a", contract::TypeCode::Int4);
    let b = column("upd", "b", contract::TypeCode::Text);
    for (sql, wanted) in [
        ("INSERT INTO upd VALUES ($1, $2, $3)", vec![a, b, None]),
        (
            "INSERT INTO upd (b, a) VALUES ($1, $2), ('x', $3)",
            vec![b, a, a],
        ),
        (
            "UPDATE upd SET a = $1, b = $2 WHERE c = $3",
            vec![a, b, None],
        ),
        ("UPDATE upd SET a = $1 WHERE a > $2", vec![a, None]),
        ("UPDATE upd SET a = $1 WHERE a <> $1", vec![None]),
        ("UPDATE upd SET a = $1 WHERE $1 IS NOT NULL", vec![None]),
        ("UPDATE upd SET a = $1 RETURNING $1", vec![None]),
        ("UPDATE upd SET a = a + $1, b = lower($2)", vec![None, None]),
        (
            "UPDATE upd SET a = coalesce($1, 5), b = $2::varchar",
            vec![None, None],
        ),
        ("UPDATE upd SET a = $1 FROM emp WHERE salary = a", vec![a]),
        ("INSERT INTO upd (a) SELECT $1 FROM emp", vec![None]),
        (
            "INSERT INTO upd (a) VALUES ($1), ($2) ORDER BY column1",
            vec![None, None],
        ),
        (
            "INSERT INTO upd (a, c) VALUES ($1, $2) ON CONFLICT (c) DO UPDATE SET a = $1",
            vec![a, None],
        ),
        (
            "WITH x AS (UPDATE upd SET a = $1 RETURNING a) SELECT a FROM x",
            vec![None],
        ),
        ("SELECT a FROM upd WHERE a = $1", vec![None]),
    ] {
        assert_eq!(fits(sql), wanted, "{sql}");
    }
}

/// A literal that the client casts to its column's type, since the cast cannot fail, has this type in the text; where
/// rows of VALUES have a type in common, and where a cast may fail, PostgreSQL casts. Bug: an error of a cast is the
/// client's, or a row gets another type.
#[test]
fn wider_literals() {
    use contract::TypeCode::{Int2, Int4, Int8, Numeric};
    assert!(rewrite::widens(Int4, Numeric) && rewrite::widens(Int2, Int8));
    assert!(!rewrite::widens(Int8, Int4) && !rewrite::widens(Numeric, Int4));
    let mut schema = schema();
    relation(
        &mut schema,
        "public.wide: n enc_numeric, i enc_int8, s enc_int2",
    );
    check(
        &schema,
        &[
            (
                "INSERT INTO wide VALUES (5, 6, 7), (-5, 1.5, 2)",
                "INSERT INTO wide VALUES ('<<int4 to numeric:5>>'::enc_numeric, '<<int4 to int8:6>>'::enc_int8, '<<int4:7>>'::enc_int4), ('<<int4 to numeric:-5>>'::enc_numeric, '<<numeric:1.5>>'::enc_numeric, '<<int4:2>>'::enc_int4)",
            ),
            (
                "UPDATE wide SET n = 5, i = i + 5 WHERE i = 5",
                "UPDATE wide SET n = '<<int4 to numeric:5>>'::enc_numeric, i = i + '<<int4:5>>'::enc_int4 WHERE i = '<<int4:5>>'::enc_int4",
            ),
            (
                "INSERT INTO wide (n) VALUES (5) ORDER BY column1",
                "INSERT INTO wide (n) VALUES ('<<int4:5>>'::enc_int4) ORDER BY column1",
            ),
        ],
    );
}

#[test]
fn parameters() {
    let schema = schema();
    let uses = |sql: &str| {
        one(sql, &schema)
            .unwrap_or_else(|r| panic!("{sql}: {r:?}"))
            .params
    };
    let p = uses(
        "SELECT * FROM emp WHERE salary = $1 AND dept = $2 AND hired > $3::date AND $4 IS NULL AND name = ANY ($5)",
    );
    assert_eq!(
        p[&1],
        ParamUse::Protected {
            declared: None,
            fits: None
        }
    );
    assert_eq!(p[&2], ParamUse::Plain);
    assert_eq!(
        p[&3],
        ParamUse::Protected {
            declared: Some(contract::TypeCode::Date),
            fits: None,
        }
    );
    // It meets nothing, and may say what the others say.
    assert_eq!(
        p[&4],
        ParamUse::Protected {
            declared: None,
            fits: None
        }
    );
    assert_eq!(
        p[&5],
        ParamUse::ProtectedArray {
            declared: Some(contract::TypeCode::Text)
        }
    );
    let p = uses("INSERT INTO upd SELECT * FROM unnest($1::int4[], $2::text[], $3::int[])");
    assert_eq!(
        p[&1],
        ParamUse::ProtectedArray {
            declared: Some(contract::TypeCode::Int4)
        }
    );
    assert_eq!(p[&3], ParamUse::Plain);
    let p =
        uses("INSERT INTO upd VALUES ($1, $2, $3) ON CONFLICT (c) DO UPDATE SET a = $1, c = $3");
    assert!(matches!(p[&1], ParamUse::Protected { declared: None, .. }));
    assert_eq!(p[&3], ParamUse::Plain);
    check(
        &schema,
        &[
            (
                "SELECT * FROM emp WHERE hired > $1::date",
                "SELECT * FROM emp WHERE hired > $1::enc_date",
            ),
            (
                "SELECT * FROM emp WHERE name = upper($1)",
                "SELECT * FROM emp WHERE name = upper($1::enc_text)",
            ),
            (
                "SELECT * FROM emp WHERE name = ANY ($1::text[])",
                "SELECT * FROM emp WHERE name = ANY ($1::enc_text[])",
            ),
            (
                "SELECT * FROM emp WHERE name LIKE '%' || $1 || '%'",
                "SELECT * FROM emp WHERE name LIKE '<<~text:%>>'::enc_text || $1::enc_text || '<<%>>'",
            ),
            (
                "SELECT * FROM emp LIMIT $1 OFFSET $2",
                "SELECT * FROM emp LIMIT $1 OFFSET $2",
            ),
        ],
    );
    refused(&schema, &["UPDATE emp SET dept = $1 WHERE salary = $1"]);
}

#[test]
fn prepare_and_execute() {
    let schema = schema();
    check(
        &schema,
        &[
            (
                "PREPARE p(int, text) AS SELECT * FROM emp WHERE salary = $1 AND note = $2 AND dept = 5",
                "PREPARE p(enc_int4, text) AS SELECT * FROM emp WHERE salary = $1 AND note = $2 AND dept = 5",
            ),
            (
                "PREPARE p(enc_int4) AS SELECT $1 + 5",
                "PREPARE p(enc_int4) AS SELECT $1 + '<<int4:5>>'::enc_int4",
            ),
        ],
    );
    let sql = "PREPARE p AS INSERT INTO upd VALUES ($1, $2, $3); EXECUTE p(1, 'x', 2)";
    let list = analyze(sql, &schema).expect("two");
    let mut prepared = Prepared::default();
    prepared.insert("p", list[0].prepare.clone().expect("info"));
    assert_eq!(list[1].edits.len(), 2);
    let sql = "EXECUTE p(1, 'x', 2)";
    let list = analyze_with(sql, &schema, &prepared).expect("execute");
    assert_eq!(
        show(sql, &list[0]),
        "EXECUTE p('<<int4:1>>'::enc_int4, '<<x>>', 2)"
    );
    refused(&schema, &["EXECUTE unknown('s3cret')"]);
}

#[test]
fn copy() {
    let schema = schema();
    let plan = |sql: &str| {
        one(sql, &schema)
            .unwrap_or_else(|r| panic!("{sql}: {r:?}"))
            .copy
            .expect("a plan")
    };
    let p = plan("COPY emp FROM STDIN");
    assert_eq!(
        (p.direction, p.endpoint, p.format),
        (Direction::From, Endpoint::Client, Format::Text)
    );
    assert_eq!(
        p.source,
        Source::Relation {
            schema: "public".into(),
            name: "emp".into()
        }
    );
    assert_eq!(
        (p.options.delimiter, p.options.null.as_str()),
        (b'\t', "\\N")
    );
    assert_eq!(p.columns.iter().filter(|c| c.protected).count(), 8);
    let p = plan(
        "COPY emp (id, salary) TO STDOUT WITH (FORMAT csv, HEADER match, DELIMITER ';', QUOTE '''', NULL 'x', FORCE_QUOTE (salary))",
    );
    assert_eq!(
        (p.format, p.options.header, p.options.delimiter),
        (Format::Csv, Header::Match, b';')
    );
    assert_eq!(
        (p.options.quote, p.options.escape, p.options.null.as_str()),
        (b'\'', b'\'', "x")
    );
    assert_eq!(p.options.force_quote, [1]);
    assert_eq!(
        p.columns.iter().map(|c| c.protected).collect::<Vec<_>>(),
        [false, true]
    );
    let p = plan("COPY emp FROM STDIN WITH CSV HEADER DELIMITER AS '|' FORCE NOT NULL name");
    assert_eq!(
        (p.format, p.options.header, p.options.delimiter),
        (Format::Csv, Header::Yes, b'|')
    );
    assert_eq!(p.options.force_not_null, [1]);
    assert_eq!(plan("COPY BINARY emp TO STDOUT").format, Format::Binary);
    let sql = "COPY (SELECT id, salary + 1 FROM emp WHERE name = 'a') TO STDOUT";
    assert_eq!(
        show(sql, &one(sql, &schema).expect("copy")),
        "COPY (SELECT id, salary + '<<int4:1>>'::enc_int4 FROM emp WHERE name = '<<a>>') TO STDOUT"
    );
    assert_eq!(
        plan(sql)
            .columns
            .iter()
            .map(|c| c.protected)
            .collect::<Vec<_>>(),
        [false, true]
    );
    let sql = "COPY emp FROM STDIN WHERE salary > 5 AND id < 3";
    assert_eq!(
        show(sql, &one(sql, &schema).expect("copy")),
        "COPY emp FROM STDIN WHERE salary > '<<int4:5>>'::enc_int4 AND id < 3"
    );
    unchanged(
        &schema,
        &[
            "COPY plain FROM '/tmp/x' WITH (FORMAT csv)",
            "COPY (SELECT 5) TO PROGRAM 'cat'",
        ],
    );
    refused(
        &schema,
        &[
            "COPY emp FROM '/tmp/x'",
            "COPY emp TO PROGRAM 'cat'",
            "COPY emp FROM STDIN (ENCODING 'latin1')",
        ],
    );
}

/// The operator class of the plain type, or for patterns, is that of the protected one: left out.
/// Bug: the statement fails, though the index without a class does what it asks for.
#[test]
fn operator_classes() {
    check(
        &schema(),
        &[
            (
                "CREATE INDEX ON emp (name text_pattern_ops)",
                "CREATE INDEX ON emp (name)",
            ),
            (
                "CREATE INDEX i ON public.emp USING btree (salary int4_ops DESC, id int4_ops, hired pg_catalog.date_ops NULLS FIRST)",
                "CREATE INDEX i ON public.emp USING btree (salary DESC, id int4_ops, hired NULLS FIRST)",
            ),
            (
                "CREATE UNIQUE INDEX ON ONLY emp USING hash (code \"varchar_pattern_ops\")",
                "CREATE UNIQUE INDEX ON ONLY emp USING hash (code)",
            ),
            (
                "CREATE INDEX ON emp ((upper(name)) Text_Ops, lower(name) text_pattern_ops)",
                "CREATE INDEX ON emp ((upper(name)), lower(name))",
            ),
        ],
    );
    unchanged(
        &schema(),
        &[
            "CREATE INDEX ON emp (note text_pattern_ops)",
            "CREATE INDEX ON emp (name int4_ops)",
            "CREATE INDEX ON emp (salary int8_ops)",
            "CREATE INDEX ON emp USING gin (name gin_trgm_ops)",
            "CREATE INDEX ON emp (name mine.text_ops)",
        ],
    );
}
