//! The family `soft_`: its types, operators, operator classes and aggregates in SQL.
//!
//! Comparisons are between values of one type: columns of two types have no common key. Sums, products
//! and quotients have types of their own, which are results only.

use super::operands::{NUMBERS, OTHERS, operand};
use crate::types;
use contract::TypeCode;
use contract::soft::{ADD, FACTORS, SUMS, TYPES, digits, possible, product_type};
use std::fmt::Write;

/// Comparisons: C name, operator, commutator, negator, estimators, B-tree strategy.
const TESTS: [(&str, &str, &str, &str, &str, &str, u8); 6] = [
    ("lt", "<", ">", ">=", "scalarltsel", "scalarltjoinsel", 1),
    ("le", "<=", ">=", ">", "scalarlesel", "scalarlejoinsel", 2),
    ("eq", "=", "=", "<>", "eqsel", "eqjoinsel", 3),
    ("ge", ">=", "<=", "<", "scalargesel", "scalargejoinsel", 4),
    ("gt", ">", "<", "<=", "scalargtsel", "scalargtjoinsel", 5),
    ("ne", "<>", "<>", "=", "neqsel", "neqjoinsel", 0),
];

fn function(out: &mut String, head: &str, ret: &str, symbol: &str, more: &str) {
    let _ = writeln!(
        out,
        "CREATE FUNCTION {head} RETURNS {ret} AS 'MODULE_PATHNAME', 'cfd_soft_{symbol}' LANGUAGE C IMMUTABLE PARALLEL SAFE{more};"
    );
}

/// The SQL definitions.
pub(super) fn sql() -> String {
    let mut out = format!("-- {}\n\n", super::NOTICE);
    function(
        &mut out,
        "pg_catalog.soft_typanalyze(internal)",
        "bool",
        "analyze",
        " STRICT",
    );
    for t in TYPES {
        let name = format!("pg_catalog.{}", t.soft_name());
        let category = types()
            .iter()
            .find(|d| d.code == t)
            .map_or('u', |d| d.category);
        definition(&mut out, &name, category, "in", true);
        function(
            &mut out,
            &format!("{name}({name}, int4, bool)"),
            &name,
            "fit",
            " STRICT",
        );
        let _ = writeln!(
            out,
            "CREATE CAST ({name} AS {name}) WITH FUNCTION {name}({name}, int4, bool) AS IMPLICIT;"
        );
        comparisons(&mut out, &name);
        opening(&mut out, t, &name);
    }
    for t in SUMS {
        let name = format!("pg_catalog.soft_sum_{}", t.plain_name());
        definition(&mut out, &name, 'n', "result_in", false);
    }
    for t in FACTORS {
        definition(&mut out, &product(t), 'n', "result_in", false);
    }
    out.push_str("\n-- Products\n");
    products(&mut out);
    out.push_str("\n-- Aggregates\n");
    for t in TYPES {
        aggregates(&mut out, t);
    }
    out
}

fn product(t: TypeCode) -> String {
    format!("pg_catalog.soft_product_{}", t.plain_name())
}

/// Factors are multiplied from left to right, as the operators are written. A product of integers has
/// its type's range, so what would make it wider is not multiplied with it.
fn products(out: &mut String) {
    let column = |t: TypeCode| format!("pg_catalog.{}", t.soft_name());
    for a in FACTORS {
        for b in FACTORS {
            let Some(t) = product_type(a, b) else {
                continue;
            };
            let result = product(t);
            operator(out, "@*", "multiply", [&column(a), &column(b)], &result);
            if t == a {
                operator(out, "@*", "multiply", [&product(a), &column(b)], &result);
                operator(out, "@*", "multiply", [&column(b), &product(a)], &result);
            }
            for left in [column(a), product(a)] {
                for right in [column(b), product(b)] {
                    operator(out, "@/", "divide", [&left, &right], &result);
                }
            }
        }
    }
}

fn operator(out: &mut String, name: &str, symbol: &str, [a, b]: [&str; 2], ret: &str) {
    let head = format!("pg_catalog.soft_{symbol}({a}, {b})");
    function(out, &head, ret, symbol, " STRICT COST 3");
    let _ = writeln!(
        out,
        "CREATE OPERATOR pg_catalog.{name} (FUNCTION = pg_catalog.soft_{symbol}, LEFTARG = {a}, RIGHTARG = {b});"
    );
}

/// The casts that open a cell, if the keeper has the column's key.
fn opening(out: &mut String, t: TypeCode, name: &str) {
    let mut targets = vec![t.enc_name().to_owned()];
    if NUMBERS.contains(&t) || OTHERS.contains(&t) {
        targets.push(operand(t));
    }
    for target in targets {
        let target = format!("pg_catalog.{target}");
        let _ = writeln!(
            out,
            "CREATE FUNCTION {target}({name}) RETURNS {target} AS 'MODULE_PATHNAME', 'cfd_soft_open' LANGUAGE C STRICT STABLE PARALLEL RESTRICTED COST 8;\nCREATE CAST ({name} AS {target}) WITH FUNCTION {target}({name}) AS IMPLICIT;"
        );
    }
}

fn definition(out: &mut String, name: &str, category: char, input: &str, column: bool) {
    let _ = writeln!(out, "\nCREATE TYPE {name};");
    function(
        out,
        &format!("{name}_in(cstring, oid, int4)"),
        name,
        input,
        " STRICT",
    );
    function(
        out,
        &format!("{name}_out({name})"),
        "cstring",
        "out",
        " STRICT",
    );
    function(
        out,
        &format!("{name}_send({name})"),
        "bytea",
        "send",
        " STRICT",
    );
    let mut more = String::new();
    if column {
        function(
            out,
            &format!("{name}_recv(internal, oid, int4)"),
            name,
            "recv",
            " STRICT",
        );
        function(
            out,
            &format!("{name}_typmod_in(cstring[])"),
            "int4",
            "typmod_in",
            " STRICT",
        );
        function(
            out,
            &format!("{name}_typmod_out(int4)"),
            "cstring",
            "typmod_out",
            " STRICT",
        );
        more = format!(
            " RECEIVE = {name}_recv, TYPMOD_IN = {name}_typmod_in, TYPMOD_OUT = {name}_typmod_out, ANALYZE = pg_catalog.soft_typanalyze,"
        );
    }
    let _ = writeln!(
        out,
        "CREATE TYPE {name} (INPUT = {name}_in, OUTPUT = {name}_out, SEND = {name}_send,{more} INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external, CATEGORY = '{category}');"
    );
}

fn comparisons(out: &mut String, x: &str) {
    let mut members = Vec::new();
    for (name, op, commutator, negator, restrict, join, strategy) in TESTS {
        let head = format!("pg_catalog.soft_{name}({x}, {x})");
        function(out, &head, "bool", name, " STRICT COST 3");
        let more = if name == "eq" { ", MERGES, HASHES" } else { "" };
        let _ = writeln!(
            out,
            "CREATE OPERATOR pg_catalog.{op} (FUNCTION = pg_catalog.soft_{name}, LEFTARG = {x}, RIGHTARG = {x}, COMMUTATOR = OPERATOR(pg_catalog.{commutator}), NEGATOR = OPERATOR(pg_catalog.{negator}), RESTRICT = {restrict}, JOIN = {join}{more});"
        );
        if strategy != 0 {
            members.push(format!("OPERATOR {strategy} {op}"));
        }
    }
    function(
        out,
        &format!("pg_catalog.soft_cmp({x}, {x})"),
        "int4",
        "cmp",
        " STRICT COST 3",
    );
    function(
        out,
        &format!("pg_catalog.soft_hash({x})"),
        "int4",
        "hash",
        " STRICT",
    );
    let extended = format!("pg_catalog.soft_hash_extended({x}, int8)");
    function(out, &extended, "int8", "hash_extended", " STRICT");
    let _ = writeln!(
        out,
        "CREATE OPERATOR CLASS {x}_ops DEFAULT FOR TYPE {x} USING btree AS {}, FUNCTION 1 pg_catalog.soft_cmp({x}, {x});",
        members.join(", ")
    );
    let _ = writeln!(
        out,
        "CREATE OPERATOR CLASS {x}_ops DEFAULT FOR TYPE {x} USING hash AS OPERATOR 1 =, FUNCTION 1 pg_catalog.soft_hash({x}), FUNCTION 2 {extended};"
    );
}

fn aggregates(out: &mut String, t: TypeCode) {
    let x = format!("pg_catalog.{}", t.soft_name());
    if digits(t) > 0 && t != TypeCode::Bool {
        for (aggregate, step, operator) in [("max", "larger", ">"), ("min", "smaller", "<")] {
            let head = format!("pg_catalog.soft_{step}({x}, {x})");
            function(out, &head, &x, step, " STRICT COST 3");
            let _ = writeln!(
                out,
                "CREATE AGGREGATE pg_catalog.{aggregate}({x}) (SFUNC = pg_catalog.soft_{step}, STYPE = {x}, SORTOP = OPERATOR(pg_catalog.{operator}), COMBINEFUNC = pg_catalog.soft_{step}, PARALLEL = SAFE);"
            );
        }
    }
    if possible(t) & ADD == 0 {
        return;
    }
    let sum = match t {
        TypeCode::Int2 | TypeCode::Int4 => "pg_catalog.soft_sum_int8",
        _ => "pg_catalog.soft_sum_numeric",
    };
    let of = t.plain_name();
    function(
        out,
        &format!("pg_catalog.soft_add(internal, {x})"),
        "internal",
        "add",
        "",
    );
    for (aggregate, symbol, ret) in [
        ("sum", "sum", sum),
        ("avg", "average", "pg_catalog.soft_sum_numeric"),
    ] {
        let finish = format!("pg_catalog.soft_{symbol}_{of}");
        function(out, &format!("{finish}(internal)"), ret, symbol, "");
        let _ = writeln!(
            out,
            "CREATE AGGREGATE pg_catalog.{aggregate}({x}) (SFUNC = pg_catalog.soft_add, STYPE = internal, FINALFUNC = {finish}, PARALLEL = SAFE);"
        );
    }
}
