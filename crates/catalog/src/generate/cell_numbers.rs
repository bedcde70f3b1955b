//! Arithmetic and comparisons of numbers of the family `rnd_`: with each other, with values `enc_…`,
//! and with plain ones.
//!
//! Two numbers of different types need a conversion that is implicit for `enc_…`, and a cell has no
//! implicit cast but to its twin. So the operators are made for every pair of types: the planner
//! puts in their place the operator of `enc_…` on what the cells are opened into. A pair that has
//! none of its own would be ambiguous, so there is one for each that could be. Not of powers: these take
//! operands, which cells have a cast to (an untyped literal beside a plain number must not find them).

use super::operands::NUMBERS;
use contract::TypeCode;
use contract::TypeCode::{Float4, Float8, Numeric};
use std::fmt::Write;

/// Operators with the names of their functions.
const SIGNS: [(&str, &str); 11] = [
    ("<", "less"),
    ("<=", "at_most"),
    ("=", "equal"),
    (">=", "at_least"),
    (">", "more"),
    ("<>", "unequal"),
    ("+", "plus"),
    ("-", "minus"),
    ("*", "times"),
    ("/", "over"),
    ("%", "rest"),
];

fn real(t: TypeCode) -> bool {
    matches!(t, Float4 | Float8)
}

fn compares(sign: &str) -> bool {
    sign.contains(['<', '=', '>'])
}

/// What both are converted to, if they are; the type of the result. As PostgreSQL resolves them.
fn resolved(sign: &str, a: TypeCode, b: TypeCode) -> Option<(Option<TypeCode>, TypeCode)> {
    let (any, all) = (real(a) || real(b), real(a) && real(b));
    let numeric = a == Numeric || b == Numeric;
    let common = match sign {
        "%" if any => return None,
        _ if any && !all => Some(Float8),
        _ if numeric && a != b => Some(Numeric),
        _ => None,
    };
    Some((common, common.unwrap_or(a.max(b))))
}

/// How a function's argument becomes an operand.
fn operand(
    number: u8,
    own: &str,
    t: TypeCode,
    common: Option<TypeCode>,
    cell_compared: bool,
) -> String {
    let enc = format!("pg_catalog.{}", t.enc_name());
    let mut text = format!("${number}");
    // Cells of one kind of numbers are compared as they are.
    if own != enc && (common.is_some() || !cell_compared || !own.contains("rnd_")) {
        let _ = write!(text, "::{enc}");
    }
    if let Some(common) = common.filter(|c| *c != t) {
        let _ = write!(text, "::pg_catalog.{}", common.enc_name());
    }
    text
}

/// The operators.
pub(super) fn operators(out: &mut String) {
    out.push_str("\n-- Arithmetic\n");
    for (sign, name) in SIGNS {
        for a in NUMBERS {
            for b in NUMBERS {
                if let Some((common, result)) = resolved(sign, a, b) {
                    pair(out, (sign, name), [a, b], common, result);
                }
            }
        }
    }
}

fn pair(
    out: &mut String,
    (sign, name): (&str, &str),
    [a, b]: [TypeCode; 2],
    common: Option<TypeCode>,
    result: TypeCode,
) {
    let names = |t: TypeCode| {
        [t.rnd_name(), t.enc_name(), t.plain_name()].map(|n| format!("pg_catalog.{n}"))
    };
    let test = compares(sign);
    let ret = match test {
        true => "bool".to_owned(),
        false => format!("pg_catalog.{}", result.enc_name()),
    };
    for (at, x) in names(a).iter().enumerate() {
        for (other, y) in names(b).iter().enumerate() {
            // Those of one kind of numbers, plain ones excepted, are in the operator families.
            let there = test && common.is_none() && at != 2 && other != 2;
            if at != 0 && other != 0 || there {
                continue;
            }
            let left = operand(1, x, a, common, test);
            let right = operand(2, y, b, common, test);
            let body = format!("{left} OPERATOR(pg_catalog.{sign}) {right}");
            let _ = writeln!(
                out,
                "CREATE FUNCTION pg_catalog.rnd_{name}({x}, {y}) RETURNS {ret} AS 'SELECT {body}' LANGUAGE sql STRICT STABLE PARALLEL RESTRICTED COST 20;\nCREATE OPERATOR pg_catalog.{sign} (FUNCTION = pg_catalog.rnd_{name}, LEFTARG = {x}, RIGHTARG = {y});"
            );
        }
    }
}
