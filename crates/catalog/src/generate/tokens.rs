//! The types `rnd_det_…`: columns `rnd_…(det)`, whose cells have tokens (docs/families.md). Their C
//! functions are those of the types `rnd_…`, but for comparisons.
//!
//! Tokens have an order, which a B-tree needs and nobody else may take for that of the values: the
//! operator families have `=` and no `<`, so that PostgreSQL finds no way to sort by tokens.

use super::cells::{
    FOR_COLUMN, arguments, cast, enc, function, plain_conversions, twins, type_definitions,
};
use crate::casts::{CastMethod, Context, casts};
use crate::operator_classes;
use contract::TypeCode;
use std::fmt::Write;

/// Comparisons: C name, operator, negator, estimators.
const TESTS: [(&str, &str, &str, &str, &str); 2] = [
    ("eq", "=", "<>", "eqsel", "eqjoinsel"),
    ("ne", "<>", "=", "neqsel", "neqjoinsel"),
];

fn det(t: TypeCode) -> String {
    format!("pg_catalog.{}", t.token_name())
}

fn rnd(t: TypeCode) -> String {
    format!("pg_catalog.{}", t.rnd_name())
}

/// The definitions of all types.
pub(super) fn types(out: &mut String) {
    out.push_str("\n-- Cells with tokens\n");
    type_definitions(out, det);
    twins(out, det);
    conversions(out);
    plain_conversions(out, det);
    arguments(out, det);
    classes(out);
}

/// From and to cells without tokens, and values and cells of other types.
fn conversions(out: &mut String) {
    out.push_str("\n-- Casts between different types\n");
    for &t in TypeCode::ALL {
        for (from, to) in [(det(t), rnd(t)), (rnd(t), det(t))] {
            let symbol = format!("fit_{}", t.plain_name());
            let head = format!("{to}({from}{FOR_COLUMN})");
            function(out, &head, &to, "VOLATILE", 40, &symbol);
            cast(out, &from, &to, FOR_COLUMN, Context::Assignment.clause());
        }
    }
    for c in casts() {
        let context = match c.context {
            Context::Implicit => Context::Assignment,
            other => other,
        };
        let name = format!("{}_to_{}", c.from.plain_name(), c.to.plain_name());
        let (from, to) = ((det(c.from), enc(c.from)), (det(c.to), enc(c.to)));
        let time = matches!(c.from, TypeCode::Timestamp | TypeCode::Timestamptz);
        // What can be NULL where its operand is not has no place here.
        if !(time && c.to == TypeCode::Time) {
            let head = format!("{}({})", to.1, from.0);
            function(out, &head, &to.1, "STABLE", 12, &format!("open_{name}"));
            cast(out, &from.0, &to.1, "", context.clause());
        }
        let head = format!("{}({}{FOR_COLUMN})", to.0, from.1);
        function(out, &head, &to.0, "VOLATILE", 44, &format!("seal_{name}"));
        cast(out, &from.1, &to.0, FOR_COLUMN, context.clause());
        // Text and varchar are one kind of values, and have one set of operators.
        if c.method == CastMethod::Binary && c.from == TypeCode::Varchar {
            let _ = writeln!(
                out,
                "CREATE CAST ({} AS {}) WITHOUT FUNCTION AS IMPLICIT;",
                from.0, to.0
            );
        }
    }
}

/// The operand types of comparisons: two cells, or one and a value.
fn pairs(a: TypeCode, b: TypeCode) -> [(String, String); 3] {
    [(det(a), det(b)), (det(a), enc(b)), (enc(a), det(b))]
}

fn comparisons(out: &mut String, a: TypeCode, b: TypeCode) {
    for (at, (x, y)) in pairs(a, b).into_iter().enumerate() {
        for (name, op, negator, restrict, join) in TESTS {
            let head = format!("pg_catalog.rnd_det_{name}({x}, {y})");
            function(out, &head, "bool", "IMMUTABLE", 1, &format!("token_{name}"));
            let hashes = if at == 0 && name == "eq" {
                ", HASHES"
            } else {
                ""
            };
            let _ = writeln!(
                out,
                "CREATE OPERATOR pg_catalog.{op} (FUNCTION = pg_catalog.rnd_det_{name}, LEFTARG = {x}, RIGHTARG = {y}, COMMUTATOR = OPERATOR(pg_catalog.{op}), NEGATOR = OPERATOR(pg_catalog.{negator}), RESTRICT = {restrict}, JOIN = {join}{hashes});"
            );
        }
        let head = format!("pg_catalog.rnd_det_cmp({x}, {y})");
        function(out, &head, "int4", "IMMUTABLE", 1, "token_cmp");
    }
}

fn classes(out: &mut String) {
    out.push_str("\n-- Comparisons of tokens, and operator classes\n");
    let classes = operator_classes();
    let hashes: Vec<_> = classes.iter().filter(|c| c.method == "hash").collect();
    for class in hashes {
        for &a in class.types {
            for &b in class.types {
                comparisons(out, a, b);
            }
            // With several values an index is searched for them in order.
            let x = enc(a);
            let head = format!("pg_catalog.rnd_det_cmp({x}, {x})");
            function(out, &head, "int4", "IMMUTABLE", 1, "token_cmp");
        }
        let family = class.family.replacen("enc_", "rnd_det_", 1);
        for method in ["btree", "hash"] {
            let _ = writeln!(
                out,
                "CREATE OPERATOR FAMILY pg_catalog.{family} USING {method};"
            );
            for &t in class.types {
                class_of(out, t, &family, method);
            }
            for &a in class.types {
                members(out, a, class.types, &family, method);
            }
        }
    }
}

fn class_of(out: &mut String, t: TypeCode, family: &str, method: &str) {
    let x = det(t);
    let members = if method == "btree" {
        format!("OPERATOR 3 = ({x}, {x}), FUNCTION 1 pg_catalog.rnd_det_cmp({x}, {x})")
    } else {
        let hash = format!("pg_catalog.rnd_det_hash({x})");
        function(out, &hash, "int4", "IMMUTABLE", 1, "token_hash");
        let extended = format!("pg_catalog.rnd_det_hash_extended({x}, int8)");
        function(
            out,
            &extended,
            "int8",
            "IMMUTABLE",
            1,
            "token_hash_extended",
        );
        format!("OPERATOR 1 = ({x}, {x}), FUNCTION 1 {hash}, FUNCTION 2 {extended}")
    };
    let _ = writeln!(
        out,
        "CREATE OPERATOR CLASS {x}_ops DEFAULT FOR TYPE {x} USING {method} FAMILY pg_catalog.{family} AS {members};"
    );
}

/// The comparisons of different types.
fn members(out: &mut String, a: TypeCode, types: &[TypeCode], family: &str, method: &str) {
    if method == "btree" {
        let x = enc(a);
        let _ = writeln!(
            out,
            "ALTER OPERATOR FAMILY pg_catalog.{family} USING btree ADD FUNCTION 1 ({x}, {x}) pg_catalog.rnd_det_cmp({x}, {x});"
        );
    }
    for &b in types {
        for (at, (x, y)) in pairs(a, b).into_iter().enumerate() {
            let added = match (method, at) {
                (_, 0) if a == b => continue,
                ("btree", _) => format!(
                    "OPERATOR 3 = ({x}, {y}), FUNCTION 1 ({x}, {y}) pg_catalog.rnd_det_cmp({x}, {y})"
                ),
                (_, 0) => format!("OPERATOR 1 = ({x}, {y})"),
                _ => continue,
            };
            let _ = writeln!(
                out,
                "ALTER OPERATOR FAMILY pg_catalog.{family} USING {method} ADD {added};"
            );
        }
    }
}
