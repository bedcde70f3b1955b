//! Functions, operators and aggregates that are made of others in SQL, as PostgreSQL has some of its own.

use super::operands::{NUMBERS, operand};
use contract::TypeCode;
use contract::TypeCode::{
    Float4, Float8, Interval, Json, Jsonb, Numeric, Time, Timestamp, Timestamptz,
};
use std::fmt::Write;

/// Functions.
pub(super) fn functions(out: &mut String) {
    out.push_str("\n-- Functions made of others\n");
    for (t, today) in [
        (Timestamp, "CAST(CURRENT_DATE AS pg_catalog.timestamp)"),
        (Timestamptz, "CAST(CURRENT_DATE AS pg_catalog.timestamptz)"),
    ] {
        let enc = t.enc_name();
        let _ = writeln!(
            out,
            "CREATE FUNCTION pg_catalog.age({enc}) RETURNS enc_interval LANGUAGE sql STABLE STRICT PARALLEL SAFE COST 16 AS 'SELECT pg_catalog.enc_age({today}::pg_catalog.{enc}, $1)';"
        );
    }
    for t in [Time, Timestamp, Timestamptz] {
        overlaps(out, t);
    }
    joined_arrays(out);
    documents(out);
    changes(out);
    percentiles(out);
    pairs(out);
}

/// `percentile_cont`. The names are not PostgreSQL's: a transition in SQL does not know the direction of the order,
/// so the proxy chooses the aggregate.
fn percentiles(out: &mut String) {
    for t in [Float8, Interval] {
        let enc = t.enc_name();
        // PostgreSQL's own aggregate checks the fraction. It adds nothing.
        let place = "pg_catalog.percentile_cont($2) WITHIN GROUP (ORDER BY CAST(0 AS pg_catalog.float8)) OPERATOR(pg_catalog.+) ($2 OPERATOR(pg_catalog.*) (pg_catalog.cardinality($1) OPERATOR(pg_catalog.-) 1))";
        let body = "SELECT CASE WHEN low OPERATOR(pg_catalog.=) high THEN $1[low] ELSE $1[low] OPERATOR(pg_catalog.+) (($1[high] OPERATOR(pg_catalog.-) $1[low]) OPERATOR(pg_catalog.*) CAST(place OPERATOR(pg_catalog.-) pg_catalog.floor(place) AS pg_catalog.enc_float8)) END";
        let index = |way: &str| {
            format!("CAST(pg_catalog.{way}(place) AS pg_catalog.int4) OPERATOR(pg_catalog.+) 1")
        };
        let (low, high) = (index("floor"), index("ceil"));
        let _ = writeln!(
            out,
            "CREATE FUNCTION pg_catalog.enc_percentile({enc}[], float8) RETURNS {enc} LANGUAGE sql STABLE PARALLEL SAFE COST 256 AS '{body} FROM (SELECT place, {low} AS low, {high} AS high FROM (SELECT {place} AS place) AS p) AS q';"
        );
        for (suffix, direction) in [("", ""), ("_desc", " DESC")] {
            let sorted = format!(
                "ARRAY(SELECT x FROM pg_catalog.unnest($1) AS u(x) WHERE x IS NOT NULL ORDER BY x{direction})"
            );
            let all = format!(
                "SELECT CASE WHEN pg_catalog.cardinality(s) OPERATOR(pg_catalog.>) 0 AND $2 IS NOT NULL THEN ARRAY(SELECT pg_catalog.enc_percentile(s, f) FROM pg_catalog.unnest($2) WITH ORDINALITY AS v(f, n) ORDER BY n) END FROM (SELECT {sorted} AS s OFFSET 0) AS t"
            );
            let one = format!("SELECT pg_catalog.enc_percentile({sorted}, $2)");
            for (array, body) in [("", one), ("[]", all)] {
                let _ = writeln!(
                    out,
                    "CREATE FUNCTION pg_catalog.enc_percentile_final{suffix}({enc}[], float8{array}) RETURNS {enc}{array} LANGUAGE sql STABLE PARALLEL SAFE COST 1024 AS '{body}';\nCREATE AGGREGATE pg_catalog.enc_percentile_cont{suffix}(float8{array} ORDER BY {enc}) (SFUNC = pg_catalog.array_append, STYPE = {enc}[], FINALFUNC = pg_catalog.enc_percentile_final{suffix}, PARALLEL = SAFE);"
                );
            }
        }
    }
}

/// `regr_count`: pairs without NULL are counted without their values, by PostgreSQL's own transition.
fn pairs(out: &mut String) {
    let pair = [operand(Float8), operand(Float8)].join(", ");
    let _ = writeln!(
        out,
        "CREATE FUNCTION pg_catalog.enc_regr_count_step(int8, {pair}) RETURNS int8 LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8inc_float8_float8';\nCREATE AGGREGATE pg_catalog.regr_count({pair}) (SFUNC = pg_catalog.enc_regr_count_step, STYPE = int8, COMBINEFUNC = pg_catalog.int8pl, INITCOND = '0', PARALLEL = SAFE);"
    );
}

/// `array_to_string`. Nothing may be written down in a definition, so the empty string that it gives of
/// nothing is a separator without its own letters.
fn joined_arrays(out: &mut String) {
    let rows = "pg_catalog.unnest($1) WITH ORDINALITY AS u(x, n)";
    let joined = |x: &str| {
        format!("coalesce(pg_catalog.string_agg({x}, $2 ORDER BY n), pg_catalog.btrim($2, $2))")
    };
    for (more, strict, body) in [
        ("", "STRICT ", joined("x")),
        (
            ", enc_text",
            "",
            format!(
                "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN {} END",
                joined("coalesce(x, $3)")
            ),
        ),
    ] {
        let _ = writeln!(
            out,
            "CREATE FUNCTION pg_catalog.enc_array_to_string(enc_text[], enc_text{more}) RETURNS enc_text LANGUAGE sql IMMUTABLE {strict}PARALLEL SAFE COST 64 AS 'SELECT {body} FROM {rows}';"
        );
    }
}

/// The list of the keys in `$2`.
const LIST: &str = "coalesce(pg_catalog.string_agg(pg_catalog.enc_item(x), NULL::pg_catalog.enc_text ORDER BY n), pg_catalog.btrim($1::pg_catalog.enc_text, $1::pg_catalog.enc_text))";
/// The keys in `$2`.
const ROWS: &str = "pg_catalog.unnest($2) WITH ORDINALITY AS u(x, n)";

/// Operators on documents and arrays of keys, which the keeper takes as one list. The list of no keys is an
/// empty string; nothing may be written down in a definition, so it is made of what is there.
fn documents(out: &mut String) {
    let both: &[TypeCode] = &[Json, Jsonb];
    for (operator, name, types, ret) in [
        ("#>", "jsonpath", both, None),
        ("#>>", "jsonpathtext", both, Some("enc_text")),
        ("?|", "jsonexistsany", &[Jsonb], Some("bool")),
        // Not ?&: see `?` in crate::operators.
        ("?&&", "jsonexistsall", &[Jsonb], Some("bool")),
        ("-", "jsondeletekeys", &[Jsonb], None),
    ] {
        for t in types {
            let enc = t.enc_name();
            let ret = ret.unwrap_or(enc);
            let call = format!("pg_catalog.enc_{name}($1, {LIST})");
            let body = match operator.starts_with("#>") {
                // A path with a NULL in it leads to NULL.
                true => {
                    format!("CASE WHEN pg_catalog.count(*) = pg_catalog.count(x) THEN {call} END")
                }
                false => call,
            };
            let _ = writeln!(
                out,
                "CREATE FUNCTION pg_catalog.enc_{name}({enc}, enc_text[]) RETURNS {ret} LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 128 AS 'SELECT {body} FROM {ROWS}';\nCREATE OPERATOR pg_catalog.{operator} (FUNCTION = pg_catalog.enc_{name}, LEFTARG = {enc}, RIGHTARG = enc_text[]);"
            );
        }
    }
}

/// Changes of a document at a path, with the flag of `jsonb_set` (whether it adds) and `jsonb_insert` (whether
/// behind the element). A path with a NULL in it is refused by the keeper: what it gets then is no list.
fn changes(out: &mut String) {
    let body = |name: &str, more: &str| {
        format!(
            "pg_catalog.enc_{name}($1, CASE WHEN pg_catalog.count(*) OPERATOR(pg_catalog.=) pg_catalog.count(x) THEN {LIST} ELSE $1::pg_catalog.enc_text END{more})"
        )
    };
    let mut define = |name: &str, more: &str, body: &str| {
        let _ = writeln!(
            out,
            "CREATE FUNCTION pg_catalog.enc_{name}(enc_jsonb, enc_text[]{more}) RETURNS enc_jsonb LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 128 AS 'SELECT {body} FROM {ROWS}';"
        );
    };
    define("jsondeletepath", "", &body("jsondeletepath", ""));
    for (name, set, unset, unless) in [
        ("jsonbset", "jsonset", "jsonreplace", "true"),
        ("jsonbinsert", "jsoninsertafter", "jsoninsert", "false"),
    ] {
        let (set, unset) = (body(set, ", $3"), body(unset, ", $3"));
        let flagged = format!("CASE WHEN $4 THEN {set} ELSE {unset} END");
        define(
            name,
            &format!(", enc_jsonb, bool DEFAULT {unless}"),
            &flagged,
        );
    }
    // Not #-: see `?` in crate::operators.
    out.push_str("CREATE OPERATOR pg_catalog.#-* (FUNCTION = pg_catalog.enc_jsondeletepath, LEFTARG = enc_jsonb, RIGHTARG = enc_text[]);\n");
}

/// `a ^ b` of any two numbers: of operands, so that PostgreSQL finds its own for untyped ones.
pub(super) fn powers(out: &mut String) {
    out.push_str("\n-- Powers\n");
    for a in NUMBERS {
        for b in NUMBERS {
            let real = |t| matches!(t, Float4 | Float8);
            let exact = !real(a) && !real(b) && (a == Numeric || b == Numeric);
            let ret = if exact { Numeric } else { Float8 }.enc_name();
            let arg = |n: u8, t: TypeCode| match t.enc_name() {
                own if own == ret => format!("${n}::pg_catalog.{own}"),
                own => format!("${n}::pg_catalog.{own}::pg_catalog.{ret}"),
            };
            let (left, right) = (operand(a), operand(b));
            let body = format!("pg_catalog.enc_power({}, {})", arg(1, a), arg(2, b));
            let _ = writeln!(
                out,
                "CREATE FUNCTION pg_catalog.enc_raise({left}, {right}) RETURNS {ret} AS 'SELECT {body}' LANGUAGE sql STRICT IMMUTABLE PARALLEL SAFE COST 20;\nCREATE OPERATOR pg_catalog.^ (FUNCTION = pg_catalog.enc_raise, LEFTARG = {left}, RIGHTARG = {right});"
            );
        }
    }
}

/// `(a, b) OVERLAPS (c, d)`, each with an end or a length.
fn overlaps(out: &mut String, t: TypeCode) {
    let enc = t.enc_name();
    let kind = match t {
        Timestamptz => "STABLE",
        _ => "IMMUTABLE",
    };
    let mut define = |name: &str, args: &str, body: &str| {
        let _ = writeln!(
            out,
            "CREATE FUNCTION pg_catalog.{name}({args}) RETURNS bool LANGUAGE sql {kind} PARALLEL SAFE COST 256 AS '{body}';"
        );
    };
    let four = [enc; 4].join(", ");
    // Starts and ends in order; an end that is not known is NULL.
    let later = |a: &str, b: &str| {
        format!(
            "CASE WHEN {a} OPERATOR(pg_catalog.<) {b} THEN true WHEN $2 IS NULL OR $4 IS NULL THEN NULL ELSE false END"
        )
    };
    let ordered = format!(
        "SELECT CASE WHEN $1 OPERATOR(pg_catalog.>) $3 THEN {} WHEN $1 OPERATOR(pg_catalog.<) $3 THEN {} WHEN $1 OPERATOR(pg_catalog.=) $3 THEN CASE WHEN $2 IS NULL OR $4 IS NULL THEN NULL ELSE true END END",
        later("$1", "$4"),
        later("$3", "$2"),
    );
    define("enc_overlaps", &four, &ordered);
    let end = |a: &str, b: &str| {
        format!("CASE WHEN {a} IS NOT NULL AND {b} IS NOT NULL THEN GREATEST({a}, {b}) END")
    };
    let body = format!(
        "SELECT pg_catalog.enc_overlaps(LEAST($1, $2), {}, LEAST($3, $4), {})",
        end("$1", "$2"),
        end("$3", "$4")
    );
    define("overlaps", &four, &body);
    let span = Interval.enc_name();
    for (second, fourth) in [(enc, span), (span, enc), (span, span)] {
        let until = |ty: &str, a: &str, b: &str| match ty == span {
            true => format!("{a} OPERATOR(pg_catalog.+) {b}"),
            false => b.to_owned(),
        };
        let body = format!(
            "SELECT pg_catalog.overlaps($1, {}, $3, {})",
            until(second, "$1", "$2"),
            until(fourth, "$3", "$4")
        );
        define("overlaps", &[enc, second, enc, fourth].join(", "), &body);
    }
}
