//! The family `rnd_`: its types, casts, operators and operator classes in SQL, and the list of
//! the C functions behind them.
//!
//! Operators other than comparisons, functions and aggregates are those of the family `enc_`,
//! by the implicit cast of each type to its twin. It is the only implicit one: with others
//! PostgreSQL would prefer operators of wider types.

use super::operands::{COUNT, NUMBERS, OTHERS};
use crate::casts::{CastMethod, Context, NAME_CASTS, casts, plain_casts};
use crate::signatures::FAMILIES;
use crate::{Signature, Signatures, Typmod, operator_classes, types};
use contract::{Op, TypeCode};
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

/// The name of a type of a family, with its schema.
pub(super) type Naming = fn(TypeCode) -> String;

fn rnd(t: TypeCode) -> String {
    format!("pg_catalog.{}", t.rnd_name())
}

pub(super) fn enc(t: TypeCode) -> String {
    format!("pg_catalog.{}", t.enc_name())
}

/// A function; what opens and seals is the leader's (docs/families.md).
pub(super) fn function(
    out: &mut String,
    head: &str,
    ret: &str,
    volatility: &str,
    cost: u32,
    symbol: &str,
) {
    let _ = writeln!(
        out,
        "CREATE FUNCTION {head} RETURNS {ret} AS 'MODULE_PATHNAME', 'cfd_cell_{symbol}' LANGUAGE C STRICT {volatility} PARALLEL RESTRICTED COST {cost};"
    );
}

fn number(signatures: &Signatures, op: Op, from: TypeCode, ret: TypeCode) -> u16 {
    let signature = Signature {
        op,
        args: vec![from],
        ret: Some(ret),
    };
    signatures.number(&signature).unwrap_or(0)
}

/// The list of C functions, as macro calls.
pub(super) fn wrappers(signatures: &Signatures) -> String {
    let mut out = format!(
        "/*\n * cells.inc\n *\t  The C functions behind the types rnd_. Whoever includes this defines the\n *\t  macros: see src/cell/functions.c.\n *\n * {}\n */\n\n",
        super::NOTICE
    );
    out.push_str("/* CFD_CELL_TYPE(name, type code, signatures of its modifier in assignments and casts) */\n");
    for &t in TypeCode::ALL {
        let assignment = number(signatures, Op::Typmod, t, t);
        let told = number(signatures, Op::TypmodExplicit, t, t);
        let explicit = if told == 0 { assignment } else { told };
        let (name, code) = (t.plain_name(), t as u8);
        let _ = writeln!(
            out,
            "CFD_CELL_TYPE({name}, {code}, {assignment}, {explicit})"
        );
    }
    out.push_str("\n/* CFD_CELL_CAST(from, type code, to, signature of the cast) */\n");
    for c in casts() {
        let (from, code, to) = (c.from.plain_name(), c.from as u8, c.to.plain_name());
        let signature = number(signatures, Op::Cast, c.from, c.to);
        let _ = writeln!(out, "CFD_CELL_CAST({from}, {code}, {to}, {signature})");
    }
    out.push_str("\n/* CFD_CELL_PLAIN(from, plain type code, to, signature of the cast) */\n");
    for (from, to, _) in plain_casts() {
        let (name, code, to_name) = (from.plain_name(), from as u8, to.plain_name());
        let signature = number(signatures, Op::Cast, from, to);
        let _ = writeln!(
            out,
            "CFD_CELL_PLAIN({name}, {code}, {to_name}, {signature})"
        );
    }
    out
}

/// The SQL definitions.
pub(super) fn sql() -> String {
    let mut out = format!("-- {}\n", super::NOTICE);
    out.push_str("\nCREATE FUNCTION pg_catalog.rnd_typanalyze(internal) RETURNS bool AS 'MODULE_PATHNAME', 'cfd_cell_analyze' LANGUAGE C STRICT;\n");
    type_definitions(&mut out, rnd);
    twins(&mut out, rnd);
    conversions(&mut out);
    plain_conversions(&mut out, rnd);
    for (_, family) in FAMILIES {
        for &a in *family {
            for &b in *family {
                comparisons(&mut out, a, b);
            }
        }
    }
    classes(&mut out);
    super::cell_numbers::operators(&mut out);
    arguments(&mut out, rnd);
    concatenations(&mut out);
    padded(&mut out);
    super::tokens::types(&mut out);
    out
}

pub(super) fn type_definitions(out: &mut String, rnd: Naming) {
    for t in types() {
        let (name, rnd) = (t.code.plain_name(), rnd(t.code));
        let _ = writeln!(out, "\nCREATE TYPE {rnd};");
        let io = [
            ("in", "cstring, oid, int4", rnd.as_str(), 8),
            ("out", rnd.as_str(), "cstring", 40),
            ("recv", "internal, oid, int4", rnd.as_str(), 8),
            ("send", rnd.as_str(), "bytea", 40),
            ("typmod_in", "cstring[]", "int4", 1),
            ("typmod_out", "int4", "cstring", 1),
        ];
        for (which, args, ret, cost) in io {
            let head = format!("{rnd}_{which}({args})");
            let symbol = format!("{which}_{name}");
            function(out, &head, ret, "STABLE", cost, &symbol);
        }
        let _ = writeln!(
            out,
            "CREATE TYPE {rnd} (INPUT = {rnd}_in, OUTPUT = {rnd}_out, RECEIVE = {rnd}_recv, SEND = {rnd}_send, TYPMOD_IN = {rnd}_typmod_in, TYPMOD_OUT = {rnd}_typmod_out, INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external, ANALYZE = pg_catalog.rnd_typanalyze, CATEGORY = '{}');",
            t.category
        );
        debug_assert!(matches!(t.typmod, Typmod::None | Typmod::Functions(_)));
    }
}

pub(super) fn cast(out: &mut String, from: &str, to: &str, arguments: &str, context: &str) {
    let _ = writeln!(
        out,
        "CREATE CAST ({from} AS {to}) WITH FUNCTION {to}({from}{arguments}){context};"
    );
}

pub(super) const FOR_COLUMN: &str = ", int4, bool";

/// To and from the twin of the family `enc_`, and into another column.
pub(super) fn twins(out: &mut String, rnd: Naming) {
    out.push_str("\n-- Opening, sealing, and sealing for another column\n");
    for &t in TypeCode::ALL {
        let (name, rnd, enc) = (t.plain_name(), rnd(t), enc(t));
        let head = format!("{enc}({rnd})");
        function(out, &head, &enc, "STABLE", 8, &format!("open_{name}"));
        cast(out, &rnd, &enc, "", Context::Implicit.clause());
        let head = format!("{rnd}({enc}{FOR_COLUMN})");
        function(out, &head, &rnd, "VOLATILE", 40, &format!("seal_{name}"));
        cast(out, &enc, &rnd, FOR_COLUMN, Context::Assignment.clause());
        let head = format!("{rnd}({rnd}{FOR_COLUMN})");
        function(out, &head, &rnd, "VOLATILE", 40, &format!("fit_{name}"));
        cast(out, &rnd, &rnd, FOR_COLUMN, Context::Implicit.clause());
    }
}

/// Between different types: as the casts of the family `enc_`, but never implicit.
fn conversions(out: &mut String) {
    out.push_str("\n-- Casts between different types\n");
    for c in casts() {
        let context = match c.context {
            Context::Implicit => Context::Assignment,
            other => other,
        };
        let name = format!("{}_to_{}", c.from.plain_name(), c.to.plain_name());
        let (from, to) = ((rnd(c.from), enc(c.from)), (rnd(c.to), enc(c.to)));
        // What can be NULL where its operand is not has no place here.
        let always = !matches!(
            (c.from, c.to),
            (TypeCode::Timestamp | TypeCode::Timestamptz, TypeCode::Time)
        );
        // Text and varchar are one kind of values, and have one set of operators.
        let same = c.method == CastMethod::Binary;
        if always {
            let head = format!("{}({})", to.1, from.0);
            function(out, &head, &to.1, "STABLE", 12, &format!("open_{name}"));
            let context = if same { Context::Implicit } else { context };
            cast(out, &from.0, &to.1, "", context.clause());
        }
        let head = format!("{}({}{FOR_COLUMN})", to.0, from.1);
        function(out, &head, &to.0, "VOLATILE", 44, &format!("seal_{name}"));
        cast(out, &from.1, &to.0, FOR_COLUMN, context.clause());
        if same && c.from == TypeCode::Varchar {
            let _ = writeln!(
                out,
                "CREATE CAST ({} AS {}) WITHOUT FUNCTION AS IMPLICIT;",
                from.0, to.0
            );
            continue;
        }
        let head = format!("{}({}{FOR_COLUMN})", to.0, from.0);
        function(out, &head, &to.0, "VOLATILE", 48, &format!("turn_{name}"));
        cast(out, &from.0, &to.0, FOR_COLUMN, context.clause());
    }
}

/// Opening into what functions of numbers and the like take.
pub(super) fn arguments(out: &mut String, rnd: Naming) {
    out.push_str("\n-- As operands\n");
    let mut operand = |t: TypeCode, name: &str, symbol: &str| {
        let rnd = rnd(t);
        let head = format!("pg_catalog.{name}({rnd})");
        function(out, &head, name, "STABLE", 8, symbol);
        let context = Context::Implicit.clause();
        cast(out, &rnd, &format!("pg_catalog.{name}"), "", context);
    };
    for &t in NUMBERS.iter().chain(&OTHERS) {
        operand(
            t,
            &super::operands::operand(t),
            &format!("open_{}", t.plain_name()),
        );
    }
    operand(TypeCode::Int4, COUNT, "open_int4");
    operand(TypeCode::Int2, COUNT, "open_int2_to_int4");
}

/// `||` of text and another type.
fn concatenations(out: &mut String) {
    out.push_str("\n-- Concatenation\n");
    let text = [TypeCode::Text, TypeCode::Varchar];
    let open = |n: u8, t: &str| match t.contains("rnd_") {
        true => format!("${n}::{}", t.replace("rnd_", "enc_")),
        false => format!("${n}"),
    };
    let mut define = |x: &str, y: &str, ret: TypeCode| {
        let ret = enc(ret);
        let (left, right) = (open(1, x), open(2, y));
        let _ = writeln!(
            out,
            "CREATE FUNCTION pg_catalog.rnd_concat({x}, {y}) RETURNS {ret} AS 'SELECT {left} OPERATOR(pg_catalog.||) {right}' LANGUAGE sql STRICT STABLE PARALLEL RESTRICTED COST 20;\nCREATE OPERATOR pg_catalog.|| (FUNCTION = pg_catalog.rnd_concat, LEFTARG = {x}, RIGHTARG = {y});"
        );
    };
    // An untyped literal is first tried as the type of what is beside it.
    for t in text {
        define(&rnd(t), &rnd(t), TypeCode::Text);
    }
    define(
        &rnd(TypeCode::Bytea),
        &rnd(TypeCode::Bytea),
        TypeCode::Bytea,
    );
    for &t in TypeCode::ALL.iter().filter(|t| !text.contains(t)) {
        for string in [rnd(TypeCode::Text), enc(TypeCode::Text)] {
            define(&rnd(t), &string, TypeCode::Text);
            define(&string, &rnd(t), TypeCode::Text);
        }
    }
}

/// Functions of text that take `bpchar`, too, by a cast that is not implicit for cells.
fn padded(out: &mut String) {
    out.push_str("\n-- Functions of padded text\n");
    let (rnd, text, int) = (
        rnd(TypeCode::Bpchar),
        enc(TypeCode::Text),
        enc(TypeCode::Int4),
    );
    for (name, more) in [
        ("upper", vec![]),
        ("lower", vec![]),
        ("left", vec![COUNT]),
        ("right", vec![COUNT]),
        ("substr", vec![COUNT]),
        ("substr", vec![COUNT, COUNT]),
        ("substring", vec![&int]),
        ("substring", vec![&int, &int]),
    ] {
        let arguments: String = more.iter().map(|t| format!(", {t}")).collect();
        let passed: String = (2..).zip(&more).map(|(n, _)| format!(", ${n}")).collect();
        let _ = writeln!(
            out,
            "CREATE FUNCTION pg_catalog.\"{name}\"({rnd}{arguments}) RETURNS {text} AS 'SELECT pg_catalog.\"{name}\"($1::{text}{passed})' LANGUAGE sql STRICT STABLE PARALLEL RESTRICTED COST 20;"
        );
    }
}

pub(super) fn plain_conversions(out: &mut String, rnd: Naming) {
    out.push_str("\n-- Casts from plain types\n");
    for (from, to, context) in plain_casts() {
        let (plain, to_rnd) = (format!("pg_catalog.{}", from.plain_name()), rnd(to));
        let context = match context {
            Context::Implicit => Context::Assignment,
            other => other,
        };
        let symbol = format!("from_{}_to_{}", from.plain_name(), to.plain_name());
        let head = format!("{to_rnd}({plain}{FOR_COLUMN})");
        function(out, &head, &to_rnd, "VOLATILE", 44, &symbol);
        cast(out, &plain, &to_rnd, FOR_COLUMN, context.clause());
    }
    for (to, _) in NAME_CASTS {
        let (plain, to_rnd) = (to.plain_name(), rnd(to));
        let _ = writeln!(
            out,
            "CREATE FUNCTION {to_rnd}(name{FOR_COLUMN}) RETURNS {to_rnd} AS 'SELECT {to_rnd}($1::pg_catalog.{plain}, $2, $3)' LANGUAGE sql STRICT VOLATILE PARALLEL RESTRICTED COST 44;"
        );
        cast(
            out,
            "name",
            &to_rnd,
            FOR_COLUMN,
            Context::Assignment.clause(),
        );
    }
}

/// The operand types of comparisons of `a` and `b`: two cells, or one and a value.
fn pairs(a: TypeCode, b: TypeCode) -> [(String, String); 3] {
    [(rnd(a), rnd(b)), (rnd(a), enc(b)), (enc(a), rnd(b))]
}

fn comparisons(out: &mut String, a: TypeCode, b: TypeCode) {
    let hashed = operator_classes()
        .iter()
        .any(|c| c.method == "hash" && c.types.contains(&a) && c.types.contains(&b));
    for (at, (x, y)) in pairs(a, b).into_iter().enumerate() {
        let both = at == 0;
        for (name, op, commutator, negator, restrict, join, _) in TESTS {
            let head = format!("pg_catalog.rnd_{name}({x}, {y})");
            function(out, &head, "bool", "IMMUTABLE", 80, name);
            let mut more = String::new();
            if both && name == "eq" {
                more.push_str(", MERGES");
                more.push_str(if hashed { ", HASHES" } else { "" });
            }
            let _ = writeln!(
                out,
                "CREATE OPERATOR pg_catalog.{op} (FUNCTION = pg_catalog.rnd_{name}, LEFTARG = {x}, RIGHTARG = {y}, COMMUTATOR = OPERATOR(pg_catalog.{commutator}), NEGATOR = OPERATOR(pg_catalog.{negator}), RESTRICT = {restrict}, JOIN = {join}{more});"
            );
        }
        let head = format!("pg_catalog.rnd_cmp({x}, {y})");
        function(out, &head, "int4", "IMMUTABLE", 80, "cmp");
    }
}

fn classes(out: &mut String) {
    out.push_str("\n-- Operator classes\n");
    for class in operator_classes() {
        let family = class.family.replacen("enc_", "rnd_", 1);
        let method = class.method;
        let _ = writeln!(
            out,
            "CREATE OPERATOR FAMILY pg_catalog.{family} USING {method};"
        );
        for &t in class.types {
            let (x, name) = (rnd(t), t.plain_name());
            let members = if method == "btree" {
                let head = format!("{x}_sortsupport(internal)");
                function(out, &head, "void", "IMMUTABLE", 1, &format!("sort_{name}"));
                format!(
                    "{}, FUNCTION 2 {x}_sortsupport(internal)",
                    tree(&x, &x, false)
                )
            } else {
                let hash = format!("pg_catalog.rnd_hash({x})");
                function(out, &hash, "int4", "IMMUTABLE", 80, "hash");
                let extended = format!("pg_catalog.rnd_hash_extended({x}, int8)");
                function(out, &extended, "int8", "IMMUTABLE", 80, "hash_extended");
                format!("OPERATOR 1 = ({x}, {x}), FUNCTION 1 {hash}, FUNCTION 2 {extended}")
            };
            let _ = writeln!(
                out,
                "CREATE OPERATOR CLASS {x}_ops DEFAULT FOR TYPE {x} USING {method} FAMILY pg_catalog.{family} AS {members};"
            );
        }
        for &a in class.types {
            // With several values an index is searched for them in order.
            if method == "btree" {
                let x = enc(a);
                let _ = writeln!(
                    out,
                    "ALTER OPERATOR FAMILY pg_catalog.{family} USING btree ADD FUNCTION 1 ({x}, {x}) pg_catalog.enc_cmp({x}, {x});"
                );
            }
            for &b in class.types {
                for (at, (x, y)) in pairs(a, b).into_iter().enumerate() {
                    let members = match (method, at) {
                        (_, 0) if a == b => continue,
                        ("btree", _) => tree(&x, &y, true),
                        (_, 0) => format!("OPERATOR 1 = ({x}, {y})"),
                        _ => continue,
                    };
                    let _ = writeln!(
                        out,
                        "ALTER OPERATOR FAMILY pg_catalog.{family} USING {method} ADD {members};"
                    );
                }
            }
        }
    }
}

fn tree(x: &str, y: &str, loose: bool) -> String {
    let mut parts: Vec<String> = TESTS
        .iter()
        .filter(|test| test.6 != 0)
        .map(|test| format!("OPERATOR {} {} ({x}, {y})", test.6, test.1))
        .collect();
    let types = if loose {
        format!(" ({x}, {y})")
    } else {
        String::new()
    };
    parts.push(format!("FUNCTION 1{types} pg_catalog.rnd_cmp({x}, {y})"));
    parts.join(", ")
}
