//! Operand types: second names of protected numbers, under which some functions take them.
//!
//! PostgreSQL finds `abs('5')` by the categories of the candidates' types: all must be of one, and then its preferred
//! type, `float8`, wins. With candidates of protected types, which have categories of their own, it fails. So functions
//! and operators of plain numbers that take an untyped literal in this way take *operands* in their protected form:
//! types of the numbers' category, not preferred, which only the protected number itself is cast to. A call with
//! something protected finds them, no other call does.
//!
//! An operand casts from one type only, so each candidate of plain numbers that PostgreSQL would find by an implicit
//! cast (`floor(int4)` is `floor(float8)`) has an overload that casts.
use super::sql::function;
use super::wrappers::from_plain;
use crate::{AggregateSignature, Arg, Signature, Signatures, TypeDefinition};
use contract::TypeCode::{
    Bool, Bytea, Float4, Float8, Int2, Int4, Int8, Interval, Numeric, Timestamp, Timestamptz,
};
use contract::{Aggregate, Op, TypeCode};
use std::fmt::Write;

pub(super) const NUMBERS: [TypeCode; 6] = [Int2, Int4, Int8, Float4, Float8, Numeric];

/// Types of other categories that have operands.
pub(super) const OTHERS: [TypeCode; 5] = [Bool, Timestamp, Timestamptz, Interval, Bytea];

/// Functions of `float8` and of `numeric`.
const REAL: [&str; 5] = ["sqrt", "exp", "ln", "log", "log10"];
/// Functions of `float8`.
const FLOAT: [&str; 19] = [
    "degrees", "radians", "sin", "cos", "tan", "cot", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "sind", "cosd", "tand", "cotd", "asind", "acosd", "atand",
];

/// How many letters, or from which on: `left(text, int4)`.
pub(super) const COUNT: &str = "enc_int4_count";

pub(super) fn operand(t: TypeCode) -> String {
    format!("{}_operand", t.enc_name())
}

/// The types of a function's arguments as SQL has them.
pub(super) fn arguments(name: &str, args: &[Arg]) -> Vec<String> {
    let alone = matches!(name, "abs" | "ceil" | "ceiling" | "floor" | "sign")
        || REAL.contains(&name)
        || FLOAT.contains(&name);
    let rounds = name == "round" || (name == "trunc" && args.len() == 2);
    let counts = matches!(
        name,
        "left" | "right" | "substr" | "lpad" | "rpad" | "repeat" | "split_part" | "overlay"
    ) || name.starts_with("regexp_");
    let timed = matches!(name, "timezone" | "date_bin" | "date_trunc" | "encode")
        || name.starts_with("justify_");
    let timed = timed && args.first() != Some(&Arg::Plain(TypeCode::Text));
    let arg = |(at, arg): (usize, &Arg)| match arg {
        Arg::Enc(t) if (alone || rounds) && at == 0 && NUMBERS.contains(t) => operand(*t),
        Arg::Enc(t) if timed && OTHERS.contains(t) => operand(*t),
        Arg::Enc(Int4) if counts => COUNT.to_owned(),
        other => other.name().to_owned(),
    };
    args.iter().enumerate().map(arg).collect()
}

/// The types of an operation's operands as SQL has them, for the function behind an operator.
pub(super) fn operands(signature: &Signature) -> Vec<String> {
    let name = |t: &TypeCode| match signature.op {
        Op::Abs | Op::Plus | Op::Sqrt if NUMBERS.contains(t) => operand(*t),
        _ => t.enc_name().to_owned(),
    };
    signature.args.iter().map(name).collect()
}

/// The types of an aggregate's arguments as SQL has them.
pub(super) fn of_aggregate(aggregate: &AggregateSignature) -> Vec<String> {
    use Aggregate::*;
    let alone = match aggregate.aggregate {
        // PostgreSQL has no preferred type for these either.
        Sum | Avg | Min | Max | BitAnd | BitOr | BitXor | StringAgg => false,
        _ => true,
    };
    let name = |t: &TypeCode| match alone {
        true => operand(*t),
        false => t.enc_name().to_owned(),
    };
    aggregate.arguments().iter().map(name).collect()
}

/// The types and their casts.
pub(super) fn definitions(out: &mut String, types: &[TypeDefinition], signatures: &Signatures) {
    out.push_str(
        "\n-- Operands: protected numbers as arguments of what untyped literals may be given to\n",
    );
    let has = |t: &&TypeDefinition| NUMBERS.contains(&t.code) || OTHERS.contains(&t.code);
    for t in types.iter().filter(has) {
        one(
            out,
            &operand(t.code),
            t.code,
            t.category.to_ascii_uppercase(),
        );
    }
    one(out, COUNT, Int4, 'N');
    let narrow = Signature {
        op: Op::Cast,
        args: vec![Int2],
        ret: Some(Int4),
    };
    debug_assert!(signatures.number(&narrow).is_some());
    let casts = [
        (Int2.enc_name(), narrow.symbol(), "IMMUTABLE"),
        ("int4", from_plain(Int4, Int4), "STABLE"),
        ("int2", from_plain(Int2, Int4), "STABLE"),
    ];
    for (from, symbol, volatility) in casts {
        let head = format!("{COUNT}(pg_catalog.{from})");
        function(out, &head, COUNT, volatility, 4, &symbol);
        let _ = writeln!(
            out,
            "CREATE CAST (pg_catalog.{from} AS {COUNT}) WITH FUNCTION pg_catalog.{COUNT}(pg_catalog.{from}) AS IMPLICIT;"
        );
    }
}

/// Overloads for what PostgreSQL casts by itself.
pub(super) fn overloads(out: &mut String) {
    out.push_str("\n-- Functions of protected numbers that are another type's\n");
    let mut overload = |name: &str, from: TypeCode, more: &str, to: TypeCode| {
        let rest = if more.is_empty() { "" } else { ", $2" };
        let (from_enc, to) = (from.enc_name(), to.enc_name());
        let _ = writeln!(
            out,
            "CREATE FUNCTION pg_catalog.\"{name}\"({}{more}) RETURNS {to} AS 'SELECT pg_catalog.\"{name}\"($1::pg_catalog.{from_enc}::pg_catalog.{to}{rest})' LANGUAGE sql STRICT IMMUTABLE PARALLEL SAFE COST 20;",
            operand(from)
        );
    };
    for from in [Int2, Int4, Int8, Float4] {
        for name in ["ceil", "ceiling", "floor", "round", "sign"] {
            overload(name, from, "", Float8);
        }
    }
    for from in [Int2, Int4, Int8, Float4] {
        for name in REAL.iter().chain(&FLOAT) {
            overload(name, from, "", Float8);
        }
    }
    for name in FLOAT {
        overload(name, Numeric, "", Float8);
    }
    for from in [Int2, Int4, Int8] {
        for name in ["round", "trunc"] {
            overload(name, from, ", enc_int4", Numeric);
        }
    }
}

fn one(out: &mut String, name: &str, code: TypeCode, category: char) {
    let (enc, plain) = (code.enc_name(), code.plain_name());
    let _ = writeln!(out, "\nCREATE TYPE pg_catalog.{name};");
    let io = [
        ("in", "cstring, oid, int4", name, 4),
        ("out", name, "cstring", 32),
        ("recv", "internal, oid, int4", name, 4),
        ("send", name, "bytea", 32),
    ];
    for (which, args, ret, cost) in io {
        let head = format!("{name}_{which}({args})");
        let symbol = format!("{which}_{plain}");
        function(out, &head, ret, "STABLE", cost, &symbol);
    }
    let _ = writeln!(
        out,
        "CREATE TYPE pg_catalog.{name} (INPUT = pg_catalog.{name}_in, OUTPUT = pg_catalog.{name}_out, RECEIVE = pg_catalog.{name}_recv, SEND = pg_catalog.{name}_send, INTERNALLENGTH = 8, PASSEDBYVALUE, ALIGNMENT = double, STORAGE = plain, CATEGORY = '{category}');\nCREATE CAST ({enc} AS {name}) WITHOUT FUNCTION AS IMPLICIT;\nCREATE CAST ({name} AS {enc}) WITHOUT FUNCTION AS IMPLICIT;"
    );
}
